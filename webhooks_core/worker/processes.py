"""Processes of this machine: they exit with their parent; which are alive."""

from __future__ import annotations

import os
import signal
import threading
import time
from argparse import ArgumentParser
from functools import cache
from pathlib import Path

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


@cache
def boot_id() -> str:
    """Return the id of this boot and pid namespace; "" where it is unknown.

    Host names repeat, and containers share a kernel but not their pids.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Return True if a process of this machine runs.

    One that has ended is not alive, even before a parent has waited for it: the first process of a
    container often waits for no orphan.
    """
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return _state(pid) not in {"Z", "X"}


def _state(pid: int) -> str:
    """Return the letter of proc_pid_stat(5) for a process; "" where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(") ")[2][:1]  # the name before it may hold anything
