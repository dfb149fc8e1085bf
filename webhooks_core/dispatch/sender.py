"""The sender: one event loop in a thread of its own, which knows nothing of the database.

Work goes in by `submit()`, answers come out by `collect()`; whoever owns the database does both.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Self

import uvloop

from webhooks_core.dispatch.rate_limit import STALE_AFTER_S
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.deadlines import Deadlines
from webhooks_core.network.transport import (
    AttemptResult,
    Client,
    OutgoingRequest,
    attempt,
    client,
    connects,
)

MAX_IN_FLIGHT = 512
# More for those that must start at once: they cannot stand in line for a place.
AT_ONCE_IN_FLIGHT = 128


class _Lane:
    """What waits for one receiver, and how many are with it now."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[tuple[float, OutgoingRequest]] = deque()
        self.running = 0


class Sender:
    """Makes attempts, at most `limit` at once per lane and MAX_IN_FLIGHT or so in all."""

    def __init__(self) -> None:
        self._answers: deque[AttemptResult] = deque()
        self._idle = threading.Event()
        self._reached = threading.Event()
        self._lanes: dict[int, _Lane] = {}
        self._awaiting_slot: dict[int, None] = {}
        self._running = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._clients: dict[AllowedNetworks, Client] = {}
        self._loop = uvloop.new_event_loop()
        self._deadlines = Deadlines(self._loop)
        self._thread = threading.Thread(target=self._loop.run_forever, name="sender")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # What the owner of the database calls.

    def submit(self, requests: Sequence[OutgoingRequest]) -> None:
        """Take requests; each gives exactly one answer."""
        if requests:
            self._idle.clear()
            self._loop.call_soon_threadsafe(self._accept, requests)

    def collect(self, *, wait_s: float) -> list[AttemptResult]:
        """Return what has ended, after `wait_s` seconds or as soon as all is done."""
        self._idle.wait(wait_s)
        return [self._answers.popleft() for _ in range(len(self._answers))]

    def release_unstarted(self) -> None:
        """Give back everything that has not been started."""
        self._idle.clear()
        self._loop.call_soon_threadsafe(self._give_back_all)

    def probe(self, url: str, reach: AllowedNetworks) -> None:
        """Try to connect to a receiver; `has_reached()` tells whether anybody was there."""
        self._loop.call_soon_threadsafe(self._probe, url, reach)

    def mark_reached(self) -> None:
        """Note that somebody was reached in another way."""
        self._reached.set()

    def has_reached(self) -> bool:
        """Tell whether a probe reached anybody since this was asked last."""
        reached = self._reached.is_set()
        self._reached.clear()
        return reached

    # What runs in the loop.

    def _probe(self, url: str, reach: AllowedNetworks) -> None:
        self._start(self._look(url, reach))

    async def _look(self, url: str, reach: AllowedNetworks) -> None:
        if await connects(url, reach):
            self._reached.set()

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, requests: Sequence[OutgoingRequest]) -> None:
        self._idle.clear()  # the last lane may have ended since submit() did this
        now = self._loop.time()
        for request in requests:
            lane = self._lanes.setdefault(request.queue, _Lane())
            lane.waiting.append((now, request))
        for pk in {request.queue: None for request in requests}:
            self._run(pk)

    def _run(self, pk: int) -> None:
        """Start as many runners as the lane's limit and ours allow."""
        lane = self._lanes[pk]
        wanted = min(len(lane.waiting), self._limit(lane) - lane.running)
        at_once = bool(lane.waiting) and lane.waiting[0][1].immediate
        most = MAX_IN_FLIGHT + AT_ONCE_IN_FLIGHT * at_once
        for _ in range(min(wanted, most - self._running)):
            lane.running += 1
            self._running += 1
            self._start(self._runner(pk, lane))
        if lane.waiting and self._running >= most:
            if at_once:
                self._drop(pk, lane)
            else:
                self._awaiting_slot[pk] = None

    def _limit(self, lane: _Lane) -> int:
        return lane.waiting[0][1].limit if lane.waiting else 0

    async def _runner(self, pk: int, lane: _Lane) -> None:
        """Send what waits in a lane, one after another, until nothing does."""
        while lane.waiting and lane.running <= self._limit(lane):
            since, request = lane.waiting.popleft()
            if self._loop.time() - since > STALE_AFTER_S:
                self._return(request)
                continue
            answer = await attempt(request, self._client(request.networks))
            self._answers.append(answer)
            if answer.is_slow:
                self._give_back(lane)
            if self._awaiting_slot:
                break  # others wait for a place: go to the end of the line
        self._finish(pk, lane)

    def _finish(self, pk: int, lane: _Lane) -> None:
        lane.running -= 1
        self._running -= 1
        if lane.waiting:
            self._awaiting_slot[pk] = None
        elif not lane.running:
            del self._lanes[pk]
        while self._awaiting_slot and self._running < MAX_IN_FLIGHT:
            pk = next(iter(self._awaiting_slot))
            del self._awaiting_slot[pk]
            if pk in self._lanes:
                self._run(pk)
        if not self._lanes:
            self._idle.set()

    def _return(self, request: OutgoingRequest) -> None:
        now = datetime.now(UTC)
        self._answers.append(AttemptResult(request.key, request.queue, now, None))

    def _give_back(self, lane: _Lane) -> None:
        while lane.waiting:
            self._return(lane.waiting.popleft()[1])

    def _drop(self, pk: int, lane: _Lane) -> None:
        """Give back what waits in a lane, and forget the lane unless something runs in it."""
        self._give_back(lane)
        if not lane.running:
            del self._lanes[pk]

    def _give_back_all(self) -> None:
        self._awaiting_slot.clear()
        for pk, lane in list(self._lanes.items()):
            self._drop(pk, lane)
        if not self._lanes:
            self._idle.set()

    def _client(self, reach: AllowedNetworks) -> Client:
        if reach not in self._clients:
            self._clients[reach] = client(reach, self._deadlines)
        return self._clients[reach]

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for it in self._clients.values():
            await it.session.close()
