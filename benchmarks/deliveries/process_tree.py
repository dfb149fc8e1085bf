"""A program and its descendants: stopped, continued, measured and killed together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.conf import settings

from benchmarks.deliveries.environments import BenchError

# setpriv(1): the program is killed when this process ends, also when it is killed.
_ENDING_WITH_US = ("setpriv", "--pdeathsig", "KILL")


class Worker:
    """A worker of another library. It is stopped while it is not measured."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        program = command[0]
        if program == "manage.py":
            started = [sys.executable, *command]
        elif program.startswith("/"):
            started = [*command]
        else:
            started = [sys.executable, "-m", *command]
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(  # noqa: S603 - programs of the group bench
                [*_ENDING_WITH_US, *started],
                env=dict(environment),
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def pids(self) -> list[int]:
        return descendants(self.pid)

    def wait(self) -> None:
        """Wait for its end. Raises BenchError unless it succeeds."""
        if self._process.wait():
            tail = self._log.read_text(errors="replace")[-2000:]
            raise BenchError(f"a program failed:\n{tail}")

    def signal(self, number: int) -> None:
        """Send a signal to the process and its descendants."""
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def check(self) -> None:
        """Raise BenchError when it has ended."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise BenchError(f"a worker ended:\n{tail}")

    def cpu(self) -> float:
        """Return the seconds of CPU of the process and its descendants."""
        return sum(map(cpu_of, self.pids()))

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU of a process and its children that have ended; 0 for none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    # With those of its children that have ended: workers are renewed now and then.
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def descendants(pid: int) -> list[int]:
    """Return a process of this machine and, on Linux, all its descendants."""
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # it has ended
        for child in children:
            pids += descendants(int(child))
    return pids
