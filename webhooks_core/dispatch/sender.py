"""The sender: one event loop in a thread of its own, which knows nothing of the database.

Work goes in by `submit()`, answers come out by `collect()`; whoever owns the database does both.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

import aiohttp
import uvloop

from webhooks_core.addresses import Reach
from webhooks_core.transport import Answer, Request, attempt, client

MAX_IN_FLIGHT = 512
# What has waited longer behind a slow receiver is given back: its endpoint may have changed.
STALE_AFTER_S = 1.0


@dataclass(slots=True)
class _Queue:
    waiting: deque[tuple[float, Request]] = field(default_factory=deque)
    running: int = 0


class Sender:
    """Makes attempts, at most `limit` at once per lane and MAX_IN_FLIGHT in all."""

    def __init__(self) -> None:
        self._answers: deque[Answer] = deque()
        self._idle = threading.Event()
        self._queues: dict[int, _Queue] = {}
        self._hungry: dict[int, None] = {}
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: dict[Reach, aiohttp.ClientSession] = {}
        self._loop = uvloop.new_event_loop()
        self._resolvers = ThreadPoolExecutor(64, thread_name_prefix="resolve")
        self._loop.set_default_executor(self._resolvers)
        self._thread = threading.Thread(target=self._loop.run_forever, name="sender")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._resolvers.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    # What the owner of the database calls.

    def submit(self, requests: Sequence[Request]) -> None:
        """Take requests; each gives exactly one answer."""
        if requests:
            self._idle.clear()
            self._loop.call_soon_threadsafe(self._accept, requests)

    def collect(self, *, wait_s: float) -> list[Answer]:
        """Return what has ended, after `wait_s` seconds or as soon as all is done."""
        self._idle.wait(wait_s)
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def withdraw(self) -> None:
        """Give back everything that has not been started."""
        self._idle.clear()
        self._loop.call_soon_threadsafe(self._give_back_all)

    # What runs in the loop.

    def _accept(self, requests: Sequence[Request]) -> None:
        now = self._loop.time()
        for request in requests:
            queue = self._queues.setdefault(request.lane, _Queue())
            queue.waiting.append((now, request))
        for lane in {request.lane: None for request in requests}:
            self._pump(lane)
        self._check_idle()

    def _pump(self, lane: int) -> None:
        """Start what a lane may start now."""
        queue = self._queues[lane]
        while queue.waiting and queue.running < queue.waiting[0][1].limit:
            if self._running >= MAX_IN_FLIGHT:
                self._hungry[lane] = None
                return
            since, request = queue.waiting.popleft()
            if self._loop.time() - since > STALE_AFTER_S:
                self._answers.append(Answer(request.key, lane, None))
                continue
            queue.running += 1
            self._running += 1
            task = self._loop.create_task(self._attempt(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if not queue.waiting and not queue.running:
            del self._queues[lane]

    async def _attempt(self, request: Request) -> None:
        answer = await attempt(request, self._client(request.reach))
        queue = self._queues[request.lane]
        queue.running -= 1
        self._running -= 1
        self._answers.append(answer)
        if answer.is_slow:
            self._give_back(request.lane)
        self._pump(request.lane)
        if self._hungry:
            lane = next(iter(self._hungry))
            del self._hungry[lane]
            if lane in self._queues:
                self._pump(lane)
        self._check_idle()

    def _give_back(self, lane: int) -> None:
        waiting = self._queues[lane].waiting
        self._answers.extend(Answer(it.key, lane, None) for _, it in waiting)
        waiting.clear()

    def _give_back_all(self) -> None:
        for lane in list(self._queues):
            self._give_back(lane)
            self._pump(lane)
        self._hungry.clear()
        self._check_idle()

    def _check_idle(self) -> None:
        if not self._queues:
            self._idle.set()

    def _client(self, reach: Reach) -> aiohttp.ClientSession:
        if reach not in self._clients:
            self._clients[reach] = client(reach)
        return self._clients[reach]

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for session in self._clients.values():
            await session.close()
