"""Threads for name resolution: one per question, so that a question that hangs delays no other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

MAX_THREADS = 512

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPerTask(Executor):
    """Runs each call in a new thread, `most` at once; any more fail at once.

    getaddrinfo cannot be interrupted, so names that hang would fill a pool. A call that waited for
    them would time out through no fault of its own. Unlike a pool's threads, these are daemons.
    """

    def __init__(self, most: int = MAX_THREADS) -> None:
        self._free = threading.Semaphore(most)

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = Future()
        if not self._start(future, partial(fn, *args, **kwargs)):
            # The error of getaddrinfo when a local resource is missing.
            future.set_exception(socket.gaierror(socket.EAI_MEMORY, "no thread"))
        return future

    def _start(self, *call: Any) -> bool:
        if not self._free.acquire(blocking=False):
            return False
        try:
            threading.Thread(target=self._work, args=call, daemon=True).start()
        except RuntimeError:
            self._free.release()
            return False
        return True

    def _work(self, future: Future[Any], call: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - the future's owner handles it
                future.set_exception(error)
        self._free.release()


THREADS = ThreadPerTask()
