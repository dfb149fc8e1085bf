"""Signals of liveness from child processes, however long their tasks take."""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

SIGNAL_EVERY_S = 0.5
# At most so much silence counts between two updates: on a busy machine, or one that was suspended,
# the observer itself did not run.
MAX_STEP_S = 1.0


class SilenceTimer:
    """Counts the seconds without a signal, in which the observer itself ran."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._updated_at = time.monotonic()

    def update(self, *, signal_seen: bool) -> float:
        """Return the length of the silence; `signal_seen` since the last update ends it."""
        now = time.monotonic()
        step, self._updated_at = min(now - self._updated_at, MAX_STEP_S), now
        self._seconds = 0.0 if signal_seen else self._seconds + step
        return self._seconds


class Liveness:
    """The liveness of one child process; created by its parent before the fork.

    A thread signals while the process waits, works or sleeps. It stops with SIGSTOP, a debugger,
    or a call that holds the interpreter's lock.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)
        self._seen = 0
        self._silence = SilenceTimer()

    @contextmanager
    def of_next_child(self) -> Iterator[None]:
        """Let the process that is forked within this block signal."""
        _expected.append(self)
        try:
            yield
        finally:
            _expected.clear()

    def silent_s(self) -> float:
        """Return for how many seconds there was no signal; call it at least once a second."""
        (count,) = struct.unpack("q", self._shared[:])
        signal_seen, self._seen = count != self._seen, count
        return self._silence.update(signal_seen=signal_seen)

    def signal(self) -> None:
        self._shared[:] = struct.pack("q", time.monotonic_ns())

    def signal_for_ever(self) -> None:
        while True:
            self.signal()
            time.sleep(SIGNAL_EVERY_S)


_expected: list[Liveness] = []


def _start_in_child() -> None:
    """Run in every forked child: start the thread of the one that is expected."""
    expected = list(_expected)
    _expected.clear()  # not for its own children
    for liveness in expected:
        thread = threading.Thread(target=liveness.signal_for_ever, daemon=True)
        thread.start()


os.register_at_fork(after_in_child=_start_in_child)
