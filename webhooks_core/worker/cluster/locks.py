"""Locks between forked processes that the kernel releases when their holder is killed.

An idle worker holds the queue's lock while it waits for a task. With a semaphore of
multiprocessing, killing that worker leaves the lock held without end, and no other gets a task.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
import weakref
from multiprocessing import Value
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_q.queues import Queue

TRY_AGAIN_S = 0.005


class ProcessLock:
    """A re-entrant lock between processes; it does not keep threads of one process apart."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._depth = 0
        self._holder = 0

    def acquire(self) -> bool:
        """Wait for the lock while its holder is alive."""
        if self._holder != os.getpid():  # a fork inherits the count, but not the lock
            self._holder, self._depth = os.getpid(), 0
        if self._depth == 0:
            self._wait()
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _wait(self) -> None:
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX)
            except OSError as error:
                # The kernel counts per process, and reports a deadlock of two threads of one.
                if error.errno != errno.EDEADLK:
                    raise
                time.sleep(TRY_AGAIN_S)
            else:
                return


def replace_locks(queue: Queue) -> Queue:
    """Give an unused queue locks that are released with their holder; return it."""
    queue._rlock, queue._wlock = ProcessLock(), ProcessLock()  # noqa: SLF001 - there is no public way
    queue.size.count = shared_number("i", 0)
    return queue


def shared_number(kind: str, value: float) -> Any:
    """Return a number in shared memory with such a lock."""
    return Value(kind, value, lock=ProcessLock())  # type: ignore[call-overload]
