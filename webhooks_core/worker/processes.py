"""Processes: they exit with their parent, even with one that is killed; which are alive."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from functools import cache
from pathlib import Path

PR_SET_PDEATHSIG = 1
POLL_EVERY_S = 0.25


def exit_with_parent(parent: int) -> None:
    """Have this process killed as soon as `parent`, the process that started it, is dead.

    Linux does it at once (prctl(2), PR_SET_PDEATHSIG); elsewhere a thread polls.
    """
    if sys.platform == "linux":
        _prctl()(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_poll, args=(parent,), daemon=True).start()
    # If the parent died before the line above, nothing else would kill this process.
    if os.getppid() != parent:
        _die()


def kill_children_on_exit() -> None:
    """Let every process that is forked from now on, by this one or its children, exit with its parent."""
    _prctl()  # before the fork: a new child must not search for a library
    os.register_at_fork(before=_save_pid, after_in_child=_follow)


_forking: list[int] = []


def _save_pid() -> None:
    _forking[:] = [os.getpid()]


def _follow() -> None:
    exit_with_parent(_forking[0])


@cache
def _prctl() -> ctypes._NamedFuncPointer:
    return ctypes.CDLL(None, use_errno=True).prctl


def _poll(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_EVERY_S)
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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


def descendants(pid: int) -> list[int]:
    """Return a process of this machine and, on Linux, all its descendants."""
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # it has ended
        for child in children:
            pids += descendants(int(child))
    return pids
