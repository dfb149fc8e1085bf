"""A request to stop, shared by every process that is forked after this module was imported.

A byte of shared memory without a lock: a process that is killed while it reads blocks no other.
"""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)


def request() -> None:
    """Request a stop of this process, the one that forked it, and its other children."""
    _flag[0] = 1


def is_set() -> bool:
    """Return True if work should end soon; cheap enough for every round of a loop."""
    return _flag[0] != 0
