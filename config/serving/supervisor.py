"""Runs programs together: if one ends, all end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

POLL_S = 0.1
GRACE_S = 35.0  # the programs themselves end within 30 s


class Supervisor:
    """Starts programs, each in its own session: Ctrl-C in a terminal reaches this process only.

    A stop signal is passed on to all of them as SIGTERM. After `grace_s`, or at a second signal,
    the remaining ones are killed. A program that ends by itself ends the others too.
    """

    def __init__(self, say: Callable[[str], None], *, grace_s: float = GRACE_S) -> None:
        self._say, self._grace_s = say, grace_s
        self._signals: list[int] = []
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def run(
        self,
        programs: Mapping[str, Sequence[str]],
        environment: Mapping[str, str],
        *,
        ready: Callable[[], bool] = lambda: True,
        on_ready: Callable[[], None] = lambda: None,
    ) -> int:
        """Run commands by their names until a stop signal (return 0) or a fault (return 1)."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: self._signals.append(number))
        try:
            for name, command in programs.items():
                self._running[name] = subprocess.Popen(  # noqa: S603 - our own commands
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            fault = self._watch(ready, on_ready)
            self._say(f"{fault}: stopping everything." if fault else "Stopping …")
        finally:
            killed = " and ".join(self._stop())
        if killed:
            self._say(f"{killed} had to be killed.")
        return 1 if fault or killed else 0

    def _watch(self, ready: Callable[[], bool], on_ready: Callable[[], None]) -> str:
        """Wait for a stop signal; return a fault that came before it, or nothing."""
        is_ready = False
        while not self._signals:
            for name, process in self._running.items():
                if (status := process.poll()) is not None:
                    return f"{name} ended unexpectedly ({_describe(status)})"
            if not is_ready and ready():
                is_ready = True
                on_ready()
            time.sleep(POLL_S)
        return ""

    def _stop(self) -> list[str]:
        """End every program; return the names of those that had to be killed."""
        for process in self._running.values():
            process.terminate()
        deadline = time.monotonic() + self._grace_s
        while self._alive() and time.monotonic() < deadline and len(self._signals) < 2:
            time.sleep(POLL_S)
        late = self._alive()
        for process in self._running.values():
            # Child processes that the program left in its group end too.
            with suppress(ProcessLookupError, PermissionError):
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
