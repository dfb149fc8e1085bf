"""The sender: one event loop in a thread of its own, without access to the database.

The dispatcher's thread passes requests to `submit()` and takes results from `collect()`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

import uvloop

from webhooks_core.dispatch.shares import Owner, Shares
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.pool import Connections
from webhooks_core.network.transport import (
    AttemptResult,
    OutgoingRequest,
    attempt,
    can_connect,
    connections_in,
)

# Of one owner; for others, a third more places are kept free.
MAX_IN_FLIGHT = 512
# A request that has waited longer is given back: its endpoint may have changed.
STALE_AFTER_S = 1.0
# About half of what a dispatcher claims. Smaller batches compete more for the interpreter's lock.
MANY_RESULTS = 1024


@dataclass(slots=True)
class _Queue:
    """The waiting requests of one endpoint, and how many of its runners are at work."""

    owner: Owner
    waiting: deque[tuple[float, OutgoingRequest]] = field(default_factory=deque)
    running: int = 0

    @property
    def limit(self) -> int:
        return self.waiting[0][1].limit if self.waiting else 0


class Sender:
    """Makes attempts, at most `limit` at once per queue and MAX_IN_FLIGHT per owner.

    An owner gets its share of all slots: a free one goes to the owner that holds the fewest.
    """

    def __init__(self) -> None:
        self._results: deque[AttemptResult] = deque()
        self._idle = threading.Event()
        self._reached = threading.Event()
        self._queues: dict[int, _Queue] = {}
        self._slots = Shares(MAX_IN_FLIGHT)
        # The queues that wait for a slot, in their order, by owner.
        self._awaiting_slot: dict[Owner, dict[int, None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: dict[AllowedNetworks, Connections] = {}
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sender")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # Called in the dispatcher's thread.

    def submit(self, requests: Sequence[OutgoingRequest]) -> None:
        """Take requests; each has exactly one result."""
        if requests:
            self._idle.clear()
            self._loop.call_soon_threadsafe(self._accept, requests)

    def collect(self, *, wait_s: float) -> list[AttemptResult]:
        """Return new results after `wait_s` seconds, or as soon as every request has one.

        Returns at once if MANY_RESULTS are there: the next requests are wanted soon.
        """
        if len(self._results) < MANY_RESULTS:
            self._idle.wait(wait_s)
        return [self._results.popleft() for _ in range(len(self._results))]

    def stop(self) -> None:
        """Start no more requests: those that have not been started are given back."""
        self._loop.call_soon_threadsafe(self._give_back_all)

    def probe(self, url: str, networks: AllowedNetworks) -> None:
        """Try to connect to a receiver; a success shows in `has_reached()`."""
        self._loop.call_soon_threadsafe(self._start, self._connect(url, networks))

    def has_reached(self) -> bool:
        """Return True if a probe reached a receiver since the last call."""
        reached = self._reached.is_set()
        self._reached.clear()
        return reached

    # Called in the event loop.

    async def _connect(self, url: str, networks: AllowedNetworks) -> None:
        if await can_connect(url, networks):
            self._reached.set()

    def _start(self, coroutine: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, requests: Sequence[OutgoingRequest]) -> None:
        self._idle.clear()  # the last queue may have ended since submit() did this
        now = self._loop.time()
        for request in requests:
            queue = self._queues.setdefault(request.queue, _Queue(request.owner))
            queue.waiting.append((now, request))
        for pk in {request.queue: None for request in requests}:
            self._start_runners(pk)

    def _start_runners(self, pk: int) -> None:
        """Start as many runners as the queue's limit and its owner's share allow."""
        queue = self._queues[pk]
        wanted = min(len(queue.waiting), queue.limit - queue.running)
        others = any(owner != queue.owner for owner in self._awaiting_slot)
        room = self._slots.room(queue.owner, is_contended=others)
        for _ in range(min(wanted, room)):
            queue.running += 1
            self._slots.add(queue.owner, 1)
            self._start(self._run(pk, queue))
        if wanted > room:
            self._awaiting_slot.setdefault(queue.owner, {})[pk] = None

    async def _run(self, pk: int, queue: _Queue) -> None:
        """Send the requests of a queue, one after another."""
        while queue.waiting and queue.running <= queue.limit:
            since, request = queue.waiting.popleft()
            if self._loop.time() - since > STALE_AFTER_S:
                self._give_back([request])
                continue
            result = await attempt(request, self._connected(request.networks))
            self._results.append(result)
            if result.is_slow:
                self._give_back_waiting(queue)
            if self._is_slot_wanted(queue.owner):
                break  # this queue waits behind those that wait already
        self._finish(pk, queue)

    def _finish(self, pk: int, queue: _Queue) -> None:
        queue.running -= 1
        self._slots.add(queue.owner, -1)
        if queue.waiting:
            self._awaiting_slot.setdefault(queue.owner, {})[pk] = None
        elif not queue.running:
            del self._queues[pk]
        self._start_awaiting()
        if not self._queues:
            self._idle.set()

    def _is_slot_wanted(self, owner: Owner) -> bool:
        """Return True if a queue of this owner, or of one with no more slots, waits for one."""
        held = self._slots.held
        return any(held(waiting) <= held(owner) for waiting in self._awaiting_slot)

    def _start_awaiting(self) -> None:
        """Give free slots to those who wait, first to the owner that holds the fewest."""
        while self._awaiting_slot:
            owner = min(self._awaiting_slot, key=self._slots.held)
            is_contended = len(self._awaiting_slot) > 1
            if not self._slots.room(owner, is_contended=is_contended):
                return
            queues = self._awaiting_slot[owner]
            pk = next(iter(queues))
            del queues[pk]
            if not queues:
                del self._awaiting_slot[owner]
            if pk in self._queues:
                self._start_runners(pk)

    def _give_back(self, requests: Iterable[OutgoingRequest]) -> None:
        """Return requests that were not started: results without an outcome."""
        now = datetime.now(UTC)
        self._results += (
            AttemptResult(request.key, request.queue, now, None) for request in requests
        )

    def _give_back_waiting(self, queue: _Queue) -> None:
        self._give_back(request for _, request in queue.waiting)
        queue.waiting.clear()

    def _give_back_all(self) -> None:
        self._awaiting_slot.clear()
        for pk, queue in list(self._queues.items()):
            self._give_back_waiting(queue)
            if not queue.running:
                del self._queues[pk]

    def _connected(self, networks: AllowedNetworks) -> Connections:
        connections = self._connections.get(networks)
        if connections is None:
            connections = connections_in(networks, self._loop)
            self._connections[networks] = connections
        return connections

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connections in self._connections.values():
            connections.close()
