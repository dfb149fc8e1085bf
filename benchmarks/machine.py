"""Programs that a benchmark runs, and what they cost this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from django.conf import settings

PATIENCE_S = 120.0
# setpriv(1): the program is killed when this process ends, also when it is killed.
ENDING_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class BenchError(Exception):
    """The benchmark cannot go on; the message says why."""


def until(holds: Callable[[], object], claim: str, *, every_s: float = 0.02) -> None:
    """Wait until a condition is true. Raises BenchError with its name when it never is."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise BenchError(f"waited in vain for: {claim}")
        time.sleep(every_s)


class Program:
    """A program and its descendants: measured, stopped, continued and killed together.

    What it prints goes to the log. With `is_asked` its standard input and output are pipes.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        log: Path,
        *,
        is_asked: bool = False,
    ) -> None:
        self._log = log
        with log.open("ab") as out:
            self.process = subprocess.Popen(  # noqa: S603 - commands of ours
                [*ENDING_WITH_US, *map(str, command)],
                env=dict(environment),
                cwd=settings.BASE_DIR,
                stdin=subprocess.PIPE if is_asked else subprocess.DEVNULL,
                stdout=subprocess.PIPE if is_asked else out,
                stderr=out,
                text=True,
                start_new_session=True,
            )

    def pids(self) -> list[int]:
        return descendants(self.process.pid)

    def cpu(self) -> float:
        """Return the seconds of CPU of the process and its descendants."""
        return cpu_of(self.pids())

    def check(self) -> None:
        """Raise BenchError when it has ended."""
        if self.process.poll() is not None:
            raise self.died()

    def died(self) -> BenchError:
        tail = self._log.read_text(errors="replace")[-2000:]
        return BenchError(f"a program of the benchmark ended:\n{tail}")

    def wait(self) -> None:
        """Wait for its end. Raises BenchError unless it succeeds."""
        if self.process.wait():
            raise self.died()

    def signal(self, number: int) -> None:
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


@contextmanager
def running(
    command: Sequence[str | Path],
    environment: Mapping[str, str],
    log: Path,
    *,
    port: int = 0,
) -> Iterator[Program]:
    """Run a program while the block lasts, which begins when it listens on the port, if there is one."""
    program = Program(command, environment, log)

    def listens() -> bool:
        program.check()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        if port:
            until(listens, f"a server on port {port}")
        yield program
    finally:
        program.kill()


def cpu_of(pids: Iterable[int]) -> float:
    """Return the seconds of CPU of processes and of their children that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):  # it has ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pids: Iterable[int]) -> int:
    """Return the resident bytes of processes."""
    pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return sum(pages) * os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """Return a process of this machine and all its descendants."""
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended
            for child in task.read_text().split():
                pids += descendants(int(child))
    return pids


def free_port() -> int:
    """Return a port of this machine on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def slug_of(name: str) -> str:
    return "".join(each if each.isalnum() else "-" for each in name.lower())
