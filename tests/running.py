"""Real processes of this project: started with an environment of their own, ended by pid."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 100  # how long a failure takes, never a success
MARK = "SIGNPOST_TEST_MARK"
INHERITED = (
    "PATH",
    "HOME",
    "COVERAGE_PROCESS_CONFIG",
)  # the last: lines run here count too


class Running:
    """A process and its output so far; `mark` is in the environment of all its descendants."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path = ROOT,
        closed_stdin: bool = False,
    ) -> None:
        self.mark = uuid4().hex
        self.lines: list[str] = []
        command = [sys.executable, *arguments]
        if closed_stdin:
            command = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command]
        self.process = subprocess.Popen(
            command,
            # The second: a process that sets its title keeps its environment, with the mark.
            env=dict(environment) | {MARK: self.mark, "SPT_NOENV": "1"},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.pid = self.process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.append(line)

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def wait_for(self, words: str) -> None:
        """Wait until these words were printed."""
        until(lambda: words in self.output or self._is_over(), words)
        assert words in self.output, f"{words!r} never came:\n{self.output}"

    def _is_over(self) -> bool:
        return self.process.poll() is not None and not self._reader.is_alive()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        os.kill(self.pid, number)
        return self.status()

    def status(self) -> int:
        """Wait for the end; return the exit status."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return code

    def family(self) -> list[int]:
        """Return the pids of all live processes that descend from this one, itself included."""
        return family(self.mark)

    def children(self, pid: int | None = None) -> list[int]:
        """Return the pids of the children of one process, in the order of their start."""
        parent = self.pid if pid is None else pid
        return sorted(
            child for child in self.family() if status_field(child, "PPid") == parent
        )

    def child(self, word: str) -> int:
        """Return the pid of the child whose command line holds a word."""
        return next(p for p in self.children() if word in command_line(p))

    def wait_until_nothing_is_left(self) -> None:
        until(lambda: not self.family(), "no process left")

    def clean_up(self) -> None:
        while alive := self.family():
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        self.process.wait(PATIENCE_S)


@contextlib.contextmanager
def running(
    *arguments: str,
    environment: Mapping[str, str],
    cwd: Path = ROOT,
    closed_stdin: bool = False,
) -> Iterator[Running]:
    """Run `python arguments…`; whatever it left behind is killed at the end."""
    process = Running(
        arguments, environment=environment, cwd=cwd, closed_stdin=closed_stdin
    )
    try:
        yield process
    finally:
        process.clean_up()


@contextlib.contextmanager
def web(variables: Mapping[str, str], *options: str) -> Iterator[tuple[Running, str]]:
    """Run the web server on a free port; yield it and its address."""
    port = free_port()
    command = ("manage.py", "web", "--port", str(port), "--skip-checks", *options)
    with running(*command, environment=variables) as process:
        until(lambda: listens(port), "the web server")
        yield process, f"http://127.0.0.1:{port}"


def environment(**variables: str) -> dict[str, str]:
    """Return an environment with nothing in it but what a process needs."""
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return inherited | variables


def migrate(variables: Mapping[str, str]) -> None:
    """Create the tables of the database that an environment names."""
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    subprocess.run(command, env=variables, cwd=ROOT, check=True)


def until(
    holds: Callable[[], object], claim: str, *, seconds: float = PATIENCE_S
) -> None:
    """Wait until something holds; fail with the claim when it never does."""
    end, pause_s = time.monotonic() + seconds, 0.02
    while not holds():
        assert time.monotonic() < end, f"waited in vain for: {claim}"
        time.sleep(pause_s)
        pause_s = min(1.3 * pause_s, 0.25)  # a look at all processes costs them time


def family(mark: str) -> list[int]:
    """Return the pids of all live processes whose environment holds a mark."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if needle in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def status_field(pid: int, name: str) -> int:
    """Return a number of /proc/<pid>/status; -1 when the process is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    return -1


def command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def listens(port: int) -> bool:
    """Return True if a server accepts connections on 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(host: str = "127.0.0.1") -> int:
    """Return a free port from where no outgoing connection gets its own: it stays free."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket(kind) as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return port
