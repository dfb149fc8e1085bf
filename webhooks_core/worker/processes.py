"""Processes: which die with their parent, even one that is killed; which are alive or descend."""

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
LOOK_EVERY_S = 0.25


def exit_with_parent(parent: int) -> None:
    """Have this process killed as soon as `parent`, the process that started it, has died.

    Linux does it at once (prctl(2), PR_SET_PDEATHSIG); elsewhere a thread looks.
    """
    if sys.platform == "linux":
        _prctl()(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        watch(parent)
    # The parent may have died before the line above: nobody would tell us any more.
    if os.getppid() != parent:
        _die()


def watch(parent: int) -> None:
    """Kill this process within a moment of its parent's death: exit_with_parent() without a kernel."""
    threading.Thread(target=_look, args=(parent,), daemon=True).start()


def kill_children_on_exit() -> None:
    """Have every process that is forked from now on, by this one or by its children, do so."""
    _prctl()  # loaded before the fork: a library must not be looked for in a fresh child
    os.register_at_fork(before=_remember, after_in_child=_follow)


_forking: list[int] = []


def _remember() -> None:
    _forking[:] = [os.getpid()]


def _follow() -> None:
    exit_with_parent(_forking[0])


@cache
def _prctl() -> ctypes._NamedFuncPointer:
    return ctypes.CDLL(None, use_errno=True).prctl


def _look(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_S)
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@cache
def boot_id() -> str:
    """Return what tells the processes of this machine from all others; "" where unknown.

    Host names repeat, and containers share a kernel but not their pids.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def is_alive(pid: int) -> bool:
    """Tell whether a process of this machine exists."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True


def descendants(pid: int) -> list[int]:
    """Return a process of this machine and, on Linux, all that descend from it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # ended meanwhile
        found += [it for child in children for it in descendants(int(child))]
    return found
