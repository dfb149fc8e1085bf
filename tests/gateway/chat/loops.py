"""Event loops of tests: in a thread of their own, with a clock that a test may put forward."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from tests.running import PATIENCE_S


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose deadlines pass when a test says so, and not because a machine is slow."""

    skipped_s = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_s


class Loop:
    """An event loop in a thread of its own. close() ends its tasks and waits for them."""

    def __init__(self) -> None:
        started: Future[asyncio.Event] = Future()
        self.loop = SkippingLoop()
        self._thread = threading.Thread(target=self._run, args=(started,))
        self._thread.start()
        self._stopped = started.result(PATIENCE_S)

    def _run(self, started: Future[asyncio.Event]) -> None:
        async def wait() -> None:
            stopped = asyncio.Event()
            started.set_result(stopped)
            await stopped.wait()

        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(wait())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_S)

    def skip(self, seconds: float) -> None:
        """Put the clock of this loop forward."""

        async def skip() -> None:
            self.loop.skipped_s += seconds

        self.run(skip())

    def set(self, event: asyncio.Event) -> None:
        """Set an event that a task of this loop awaits."""
        self.loop.call_soon_threadsafe(event.set)

    def tasks(self) -> int:
        """Return the number of tasks but for this one and the one that waits for close()."""

        async def count() -> int:
            return len(asyncio.all_tasks()) - 2

        return int(self.run(count()))

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()
