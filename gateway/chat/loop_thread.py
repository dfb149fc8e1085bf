"""An event loop in a thread of its own, for servers that call views in threads."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from gateway.chat import runtime

# The longest wait for the last writes when the process ends.
CLOSING_S = 15.0
# The longest wait for the end of requests that run then.
CANCELLED_S = 2.0

T = TypeVar("T")


class LoopThread:
    """One event loop per process, started by the first request and so after the server has forked."""

    def __init__(self) -> None:
        atexit.register(self.stop)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._futures: set[Future[Any]] = set()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; cancelling the future, or stop(), cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        return future

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="chat-loop", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        """End what runs, write what is not written yet, and end the thread if there is one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            for future in list(self._futures):
                future.cancel()
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLOSING_S)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_cancelled())
    loop.run_until_complete(runtime.stop())
    loop.close()


async def _cancelled() -> None:
    """Wait for the end of the tasks that stop() has cancelled: they record what they used."""
    if tasks := {task for task in asyncio.all_tasks() if task.cancelling()}:
        await asyncio.wait(tasks, timeout=CANCELLED_S)


LOOP_THREAD = LoopThread()
