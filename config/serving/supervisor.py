"""Runs programs together: if one ends, all end, or it is started again. Needs no Django."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType

POLL_S = 0.1
# The programs themselves end within 30 s.
GRACE_S = 35
# So many programs may be started again in so long a time: more of them will not work either.
RESTARTS, RESTARTS_S = 5, 60.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Program:
    """A command; `keep` are file descriptors that move to its process."""

    name: str
    command: Sequence[str]
    keep: Sequence[int] = ()


@dataclass(slots=True)
class Supervisor:
    """Starts programs, each in its own session: Ctrl-C in a terminal reaches this process only.

    A stop signal is passed on to all of them as SIGTERM. After `grace_s`, or at a second
    signal, the remaining ones are killed. A program that ends by itself ends the others too;
    with `restarts` it is started again, unless too many were.
    """

    programs: Sequence[Program]
    say: Callable[[str], None]
    ready: Callable[[], bool] = lambda: True
    on_ready: Callable[[], None] = lambda: None
    grace_s: float = GRACE_S
    restarts: bool = False
    _restarted_at: deque[float] = field(
        default_factory=lambda: deque([-RESTARTS_S] * RESTARTS, RESTARTS)
    )
    _signals: list[int] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(self) -> int:
        """Run until a stop signal (return 0) or a fault (return 1)."""
        with self._signal_handlers():
            try:
                fault = self._start() or self._watch()
                self.say(f"{fault}: stopping everything." if fault else "Stopping …")
            finally:
                killed = " and ".join(self._stop())
        if killed:
            self.say(f"{killed} had to be killed.")
        return 1 if fault or killed else 0

    @contextlib.contextmanager
    def _signal_handlers(self) -> Iterator[None]:
        previous = {
            number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS
        }
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)

    def _start(self) -> str:
        """Start every program; return a fault, or nothing."""
        for program in self.programs:
            if fault := self._start_one(program):
                return fault
        if not self.restarts:
            self._close_kept()
        return ""

    def _start_one(self, program: Program) -> str:
        try:
            self._running[program.name] = subprocess.Popen(  # noqa: S603 - our own commands
                program.command,
                pass_fds=program.keep,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            return f"{program.name} cannot be started: {error}"
        return ""

    def _close_kept(self) -> None:
        """Close our copies of sockets: they would accept connections that no process serves."""
        for number in {number for program in self.programs for number in program.keep}:
            with contextlib.suppress(OSError):  # closed before
                os.close(number)

    def _watch(self) -> str:
        """Wait for a stop signal; return a fault that came before it, or nothing."""
        is_ready = False
        while not self._signals:
            for program in self.programs:
                status = self._running[program.name].poll()
                if status is not None and (fault := self._replace(program, status)):
                    return fault
            if not is_ready and self.ready():
                is_ready = True
                self.on_ready()
            time.sleep(POLL_S)
        return ""

    def _replace(self, program: Program, status: int) -> str:
        """Start a program that ended again, or return the fault that this is."""
        fault = f"{program.name} ended unexpectedly ({_describe(status)})"
        now = time.monotonic()
        if not self.restarts or now - self._restarted_at[0] < RESTARTS_S:
            return fault
        self._restarted_at.append(now)
        self.say(f"{fault}: starting it again.")
        return self._start_one(program)

    def _stop(self) -> list[str]:
        """End every program; return the names of those that had to be killed."""
        self._close_kept()
        for process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + self.grace_s
        while self._alive() and time.monotonic() < deadline and len(self._signals) < 2:
            time.sleep(POLL_S)
        late = self._alive()
        for process in self._running.values():
            # Child processes that the program left in its group end too.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return late

    def _alive(self) -> list[str]:
        return [
            name for name, process in self._running.items() if process.poll() is None
        ]


def _describe(status: int) -> str:
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
