"""One installation under fire: its database, its broker, its cluster, and a process that publishes."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import orjson

from tests.faults import rigged
from tests.running import ROOT, Running, environment, running, until

# Models can only be imported after setup().
APPLICATION = (
    "import django; django.setup();"
    " from tests.faults import application; application.main()"
)


class DatabaseAwayError(Exception):
    """The database refused a statement of the application."""


class Application:
    """A process of the application beside the cluster."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", APPLICATION, str(folder)],
            env={"DJANGO_SETTINGS_MODULE": "config.settings", **variables},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # it logs that wake-ups fail, as it should
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def send(self, *command: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(orjson.dumps(command).decode() + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        """Return the response to the last command. Raises DatabaseAwayError."""
        assert self._process.stdout
        answer = orjson.loads(self._process.stdout.readline())
        if "error" in answer:
            raise DatabaseAwayError(answer["error"])
        return answer["ok"]

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()


class Site:
    """A database with a cluster that is started when it is wanted and is not there."""

    def __init__(self, name: str, folder: Path, **variables: str) -> None:
        self.name = name
        self._folder = folder
        self._environment = environment(**variables)
        self._stack = ExitStack()
        self._cluster: Running | None = None
        self._shown = 0
        self.move_clock(0)

    @contextmanager
    def running(self) -> Iterator["Site"]:
        """Open a process that publishes and one that looks; end all at the end."""
        with self._stack:
            self.publisher, self.watcher = (
                self._stack.enter_context(Application(self._folder, self._environment))
                for _ in range(2)
            )
            yield self

    @contextmanager
    def another_machine(self, folder: Path, *, ahead: float = 0) -> Iterator["Site"]:
        """Open a site on the same database and broker whose wall clock is some seconds ahead."""
        other = Site(self.name, folder)
        other._environment = self._environment
        other.move_clock(ahead)
        with other._stack:
            yield other
            other.stop()

    def run(self, *command: str) -> None:
        """Run a command of manage.py beside the cluster."""
        rigged = [sys.executable, "-m", "tests.faults.rigged", str(self._folder)]
        subprocess.run(
            [*rigged, *command],
            env=self._environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    # The cluster.

    def cluster(self, *command: str) -> Running:
        """Return the cluster; start it, by a command of manage.py, when it does not run."""
        if self._cluster is None or self._cluster.process.poll() is not None:
            rig = ("-m", "tests.faults.rigged", str(self._folder))
            self._shown = 0
            self._cluster = self._stack.enter_context(
                running(
                    *rig,
                    *(command or ("qcluster", "--skip-checks")),
                    environment=self._environment,
                )
            )
        return self._cluster

    def stop(self) -> None:
        """Stop the cluster as an operator does."""
        if self._cluster and self._cluster.process.poll() is None:
            assert self._cluster.end() == 0, self._cluster.output

    def kill(self, victim: str) -> None:
        """kill -9: a halted worker, the cluster's first process, or every process at once."""
        cluster = self.cluster()
        if victim == "the worker":
            os.kill(self.halted(), signal.SIGKILL)
            return
        if victim == "the cluster":
            os.kill(cluster.pid, signal.SIGKILL)
        else:
            kill(cluster.family())
        cluster.wait_until_nothing_is_left()
        cluster.status()

    def output(self) -> str:
        """Return what the cluster has said since the last call."""
        if self._cluster is None:
            return ""
        lines, self._shown = (
            self._cluster.lines[self._shown :],
            len(self._cluster.lines),
        )
        return "".join(lines)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let the cluster do nothing for a while (SIGSTOP), without any of it noticing."""
        pids = self.cluster().family()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):  # killed meanwhile
                    os.kill(pid, signal.SIGCONT)

    # Points.

    def arm(self, point: str) -> None:
        """Have the first process that comes to a point stop there."""
        (self._folder / rigged.HALTED).unlink(missing_ok=True)
        (self._folder / point).touch()

    def halted(self) -> int:
        """Wait until a process has stopped at the point; return its pid."""
        file = self._folder / rigged.HALTED
        until(file.exists, f"a process to come to the point\n{self.output()}")
        pid = int(file.read_text())
        until(lambda: _state(pid) == "T", "the process to stop")
        return pid

    def go_on(self) -> None:
        os.kill(self.halted(), signal.SIGCONT)

    def move_clock(self, seconds: float) -> None:
        """Set the wall clock of every process to so many seconds ahead of the true time."""
        file = self._folder / rigged.CLOCK
        with file.open("r+b" if file.exists() else "xb") as clock:
            clock.write(struct.pack("d", seconds))


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it died with its parent
            os.kill(pid, signal.SIGKILL)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
