"""Processes that exit with their parent."""

from __future__ import annotations

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
