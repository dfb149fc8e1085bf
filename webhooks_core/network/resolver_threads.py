"""Threads for asking name servers: one for each question, so that who hangs holds up no other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

MOST = 512

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPerTask(Executor):
    """Runs each call in a new thread, up to `most` at once; the others fail for want of one.

    getaddrinfo cannot be interrupted, and a pool would be full of names that hang. Nobody waits
    in line behind them: that would be a time-out of one who has done nothing. Unlike a pool's,
    these threads keep no process from ending.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._running = 0
        self._lock = threading.Lock()

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        future: Future[T] = Future()
        call = partial(_run, future, partial(fn, *args, **kwargs))
        if not self._begin(call):  # this machine's own want
            future.set_exception(socket.gaierror(socket.EAI_MEMORY, "no thread"))
        return future

    def _begin(self, call: Callable[[], None]) -> bool:
        with self._lock:
            if self._running >= self._most:
                return False
            self._running += 1
        try:
            threading.Thread(target=self._work, args=(call,), daemon=True).start()
        except RuntimeError:
            self._leave()
            return False
        return True

    def _work(self, call: Callable[[], None]) -> None:
        call()
        self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001 - whoever waits for the result gets it
        future.set_exception(error)


THREADS = ThreadPerTask()
