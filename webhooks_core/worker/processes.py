"""Processes that exit with their parent, and a request to stop that all of them share."""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time
from argparse import ArgumentParser

POLL_EVERY_S = 0.25


def add_parent_argument(parser: ArgumentParser) -> None:
    """Add --exit-with-parent to a command, for exit_with_parent()."""
    parser.add_argument(
        "--exit-with-parent",
        type=int,
        metavar="PID",
        help="exit when this parent process exits",
    )


def exit_with_parent(parent: int | None) -> None:
    """Have this process killed soon after `parent`, the process that started it, is dead.

    None: this process does not depend on it.
    """
    if parent is None:
        return

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(POLL_EVERY_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=poll, daemon=True).start()


# Shared by every process that is forked after this module was imported. Without a lock: a process
# that is killed while it reads blocks no other.
_flag = mmap.mmap(-1, 1)


def request_stop() -> None:
    """Request a stop of this process, the one that forked it, and its other children."""
    _flag[0] = 1


def is_stopping() -> bool:
    """Return True if work should end soon; cheap enough for every round of a loop."""
    return _flag[0] != 0
