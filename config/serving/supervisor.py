"""Runs programs side by side: all of them, or none. Knows no Django."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

LOOK_EVERY_S = 0.1
# The programs themselves are done within 30 s.
GRACE_S = 35
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Program:
    """What to run; `keep` are file descriptors that it inherits, and has alone from then on."""

    name: str
    command: Sequence[str]
    keep: Sequence[int] = ()


@dataclass(slots=True)
class Supervisor:
    """Starts programs, each in a session of its own, so that a terminal's Ctrl-C is ours alone.

    A stop signal is passed on to all of them as SIGTERM; who is not done after `grace_s`, or
    when a second signal comes, is killed. A program that ends by itself ends the others too.
    """

    programs: Sequence[Program]
    say: Callable[[str], None]
    ready: Callable[[], bool] = lambda: True
    on_ready: Callable[[], None] = lambda: None
    grace_s: float = GRACE_S
    _signals: list[int] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self) -> int:
        """Run until told to stop (returns 0) or until something went wrong (returns 1)."""
        with self._listening():
            try:
                trouble = self._start() or self._watch()
                self.say(
                    f"{trouble}: stopping everything." if trouble else "Stopping …"
                )
            finally:
                late = self._stop()
        if late:
            self.say(late)
        return 1 if trouble or late else 0

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        previous = {
            number: signal.signal(number, self._hear) for number in STOP_SIGNALS
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _start(self) -> str:
        """Return what could not be started; nothing when all could."""
        for program in self.programs:
            try:
                self._running[program.name] = subprocess.Popen(  # noqa: S603 - our own commands
                    program.command,
                    pass_fds=program.keep,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                return f"{program.name} cannot be started: {error}"
            # A listening socket of which a copy stays open takes connections for nobody.
            for number in program.keep:
                os.close(number)
        return ""

    def _watch(self) -> str:
        """Return what ended the run; nothing when a signal did."""
        announced = False
        while not self._signals:
            for name, process in self._running.items():
                if (status := process.poll()) is not None:
                    return f"{name} ended unexpectedly ({_told(status)})"
            if not announced and self.ready():
                announced = True
                self.on_ready()
            time.sleep(LOOK_EVERY_S)
        return ""

    def _stop(self) -> str:
        """End every program; return who had to be killed, nothing when nobody had to."""
        for process in self._running.values():
            process.terminate()
        end = time.monotonic() + self.grace_s
        while self._alive() and time.monotonic() < end and len(self._signals) < 2:
            time.sleep(LOOK_EVERY_S)
        late = self._alive()
        for process in self._running.values():
            # Whoever a program left in its group goes too.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return f"{' and '.join(late)} had to be killed." if late else ""

    def _alive(self) -> list[str]:
        return [
            name for name, process in self._running.items() if process.poll() is None
        ]


def _told(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
