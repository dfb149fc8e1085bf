"""`events/stream`: events as they are published, on the event loop and without a thread for each.

One look at the database each second serves all streams of a process.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import orjson
import structlog
from django.contrib.auth import get_user_model
from django.db.models import CharField, OuterRef, Subquery
from django.db.models.functions import Cast
from django.utils import timezone

from recording.mcp.events import catalog, clients, polling
from recording.mcp.events.clients import Client
from recording.mcp.events.conf import option
from recording.mcp.events.cursors import Position
from recording.mcp.events.errors import ForbiddenError, ResourceExhaustedError
from recording.mcp.events.occurrences import Subject
from recording.mcp.metrics import open_streams
from recording.webhooks import PROFILE
from webhooks_core.models import Event
from webhooks_core.web.thread_pool import ThreadPool, with_connection

T = TypeVar("T")
Notification = dict[str, Any]

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LOOK_S = 1.0
HEARTBEAT_S = 25.0  # SEP-3415: at least every 30 seconds
UNREADABLE = {"code": -32603, "message": "The events cannot be read now."}

log = structlog.stdlib.get_logger(__name__)


@dataclass(eq=False)
class Stream:
    """One open stream: what it is about, how far it is, and whose token it has."""

    subject: Subject
    position: Position
    client: Client
    truncated: bool = False
    request_id: str | int = 0
    is_disconnected: bool = False
    is_over: bool = False
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        self._changed.set()

    def end(self, *, disconnected: bool = False) -> None:
        self.is_over, self.is_disconnected = True, disconnected
        self.wake()

    async def wait(self, seconds: float) -> bool:
        """Wait until there may be something to do; return False if the time is over."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    def notification(self, kind: str, /, **params: Any) -> bytes:
        meta = {"_meta": {SUBSCRIPTION_ID: self.request_id}}
        method = f"notifications/events/{kind}"
        return _frame({"jsonrpc": "2.0", "method": method, "params": params | meta})

    def result(self) -> bytes:
        meta = {SUBSCRIPTION_ID: self.request_id}
        result = {"resultType": "complete", "_meta": meta}
        return _frame({"jsonrpc": "2.0", "id": self.request_id, "result": result})


def _frame(message: Notification) -> bytes:
    return b"event: message\ndata: " + orjson.dumps(message) + b"\n\n"


def open_stream(
    subject: Subject, cursor: str | None, *, max_age_ms: int | None, client: Client
) -> Stream:
    """Return a stream that has not started. Raises InvalidParamsError, ResourceExhaustedError."""
    most, now = option("MCP_EVENTS_STREAMS"), timezone.now()
    if _open[subject.account] >= most:
        raise ResourceExhaustedError(
            f"an account has at most {most} streams here; close one first",
            limit="streams",
            max=most,
        )
    if cursor is None:
        return Stream(subject, polling.start(subject, now=now).position, client)
    position = Position.read(cursor, account=subject.account)
    floor = position.floor(now, max_age_ms)
    if position.at >= floor:
        return Stream(subject, position, client)
    # Behind what is too old now: what comes while the stream is open is never too old.
    event = max(position.event, subject.newest(before=floor))
    position = Position(subject.account, event, floor)
    return Stream(subject, position, client, truncated=True)


async def parts(stream: Stream, request_id: str | int) -> AsyncGenerator[bytes]:
    """Yield the stream's messages as server-sent events, until it ends."""
    stream.request_id = request_id
    hub = _hub()
    hub.add(stream)
    try:
        cursor = stream.position.cursor()
        yield stream.notification("active", cursor=cursor, truncated=stream.truncated)
        async for part in _messages(stream, hub):
            yield part
    finally:
        hub.remove(stream)


async def _messages(stream: Stream, hub: Hub) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    heartbeat_at = loop.time() + HEARTBEAT_S
    while not stream.is_over:
        page = await hub.read(stream)
        if page is None:
            yield stream.notification("error", error=UNREADABLE)
            await asyncio.sleep(LOOK_S)
            continue
        for occurrence, position in page.with_positions():
            yield stream.notification("event", **occurrence, cursor=position.cursor())
        stream.position = page.position
        if page.has_more or await stream.wait(heartbeat_at - loop.time()):
            continue
        yield stream.notification("heartbeat", cursor=stream.position.cursor())
        heartbeat_at = loop.time() + HEARTBEAT_S
    if stream.is_disconnected:
        error = ForbiddenError("access was revoked", reason="Access revoked")
        yield stream.notification("terminated", error=error.as_dict(is_draft=False))
    yield stream.result()


class Hub:
    """The streams of one event loop, and the thread that looks into the database for them."""

    def __init__(self) -> None:
        self._streams: set[Stream] = set()
        self._task: asyncio.Task[None] | None = None
        self._has_ended = False

    @cached_property
    def _pool(self) -> ThreadPool:
        return ThreadPool(1, name="mcp-events")

    def add(self, stream: Stream) -> None:
        if self._has_ended:
            stream.end()
        self._streams.add(stream)
        _open[stream.subject.account] += 1
        open_streams.inc()
        if self._task is None:
            self._task = asyncio.create_task(self._watch())

    def remove(self, stream: Stream) -> None:
        self._streams.discard(stream)
        _open[stream.subject.account] -= 1
        if not _open[stream.subject.account]:
            del _open[stream.subject.account]
        open_streams.dec()

    def end(self) -> None:
        """End every stream, also those whose requests are not answered yet."""
        self._has_ended = True
        for stream in self._streams:
            stream.end()

    async def read(self, stream: Stream) -> polling.Page | None:
        """Return what is new; None if it cannot be read now."""
        return await self._run(
            lambda: polling.read_page(
                stream.subject,
                stream.position,
                max_events=polling.MAX_EVENTS,
                now=timezone.now(),
            )
        )

    async def _run(self, function: Callable[[], T]) -> T | None:
        try:
            return await self._pool.run(partial(with_connection, function))
        except Exception:
            log.exception("events not read")
            return None

    async def _watch(self) -> None:
        """Wake the streams with new events, and end those whose token has ended."""
        while self._streams:
            await asyncio.sleep(LOOK_S)
            streams = list(self._streams)
            seen = await self._run(partial(_look, streams))
            if seen is not None:
                _apply(streams, *seen)
        self._task = None


def _look(streams: list[Stream]) -> tuple[dict[int, int], set[tuple[str, int]]]:
    """Return the newest event of each account, and which tokens are valid."""
    newest = (
        Event.objects.filter(
            profile=PROFILE,
            owner=Cast(OuterRef("pk"), CharField()),
            type__in=catalog.NAMES,
        )
        .order_by("-pk")
        .values("pk")[:1]
    )
    accounts = get_user_model().objects.filter(
        pk__in={stream.subject.account for stream in streams}
    )
    rows = accounts.annotate(newest=Subquery(newest)).values_list("pk", "newest")
    tokens = clients.live_tokens({stream.client.token for stream in streams})
    return {pk: newest or 0 for pk, newest in rows}, tokens


def _apply(
    streams: list[Stream], newest: dict[int, int], tokens: set[tuple[str, int]]
) -> None:
    now = timezone.now()
    for stream in streams:
        if stream.client.token not in tokens:
            stream.end(disconnected=now < stream.client.expires_at)
        elif newest.get(stream.subject.account, 0) > stream.position.event:
            stream.wake()


_open: Counter[int] = Counter()  # streams by account
_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def _hub() -> Hub:
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]


def end_all() -> None:
    """End the streams of the running loop, each with its last message; it stops."""
    _hub().end()
