"""The wish to stop, seen by every process that was forked after this module was imported.

A byte of shared memory and no lock: a process that is killed while it looks can hold up nobody.
"""

from __future__ import annotations

import mmap

_flag = mmap.mmap(-1, 1)


def request() -> None:
    """Ask for a stop: here, in the process that forked this one, and in its other children."""
    _flag[0] = 1


def is_set() -> bool:
    """Tell whether work should end soon; cheap enough for every turn of a loop."""
    return _flag[0] != 0


def clear() -> None:
    """Take the wish back."""
    _flag[0] = 0
