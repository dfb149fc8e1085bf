"""Pulses: a process that is alive and not frozen shows it, however long its task takes."""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY_S = 0.5
# Between two looks no more than this is counted as silence: whoever looks too rarely, since the
# machine is busy or was asleep, cannot tell who else was.
LOOK_S = 1.0


class SilenceTimer:
    """Counts the seconds that somebody has been silent, as far as we were awake to notice."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._looked_at = time.monotonic()

    def update(self, *, broken: bool) -> float:
        """Return how long it has lasted; `broken` says that there was a sign since the last look."""
        now = time.monotonic()
        step, self._looked_at = min(now - self._looked_at, LOOK_S), now
        self._seconds = 0.0 if broken else self._seconds + step
        return self._seconds


class Liveness:
    """The pulse of one child process; made by its parent before the fork.

    Beaten by a thread: it goes on while the process waits, works or sleeps, and stops with
    SIGSTOP, a debugger, or a call that holds the interpreter's lock.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8)
        self._seen = 0
        self._silence = SilenceTimer()

    @contextmanager
    def of_next_child(self) -> Iterator[None]:
        """Have the process that is forked within this block beat."""
        _expected.append(self)
        try:
            yield
        finally:
            _expected.clear()

    def silent_s(self) -> float:
        """Return for how many seconds there was no beat; to be asked once a second or more."""
        (count,) = struct.unpack("q", self._shared[:])
        broken, self._seen = count != self._seen, count
        return self._silence.update(broken=broken)

    def beat_once(self) -> None:
        self._shared[:] = struct.pack("q", time.monotonic_ns())

    def beat(self) -> None:
        while True:
            self.beat_once()
            time.sleep(EVERY_S)


_expected: list[Liveness] = []


def _begin() -> None:
    """Run in every forked child: only the one that was meant beats."""
    pulses = list(_expected)
    _expected.clear()  # its own children are not meant
    for pulse in pulses:
        threading.Thread(target=pulse.beat, name="pulse", daemon=True).start()


os.register_at_fork(after_in_child=_begin)
