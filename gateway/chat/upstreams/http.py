"""How upstreams are called over HTTP: one pooled client per event loop, bounded and mapped."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from weakref import WeakSet

import aiohttp
import orjson
from aiohttp.connector import Connection

from gateway.chat.chunks import failure_in
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.sse import EventReader
from gateway.chat.upstreams.base import Job
from webhooks_core.deadlines import within

MAX_ANSWER_BYTES = 32 * 1024 * 1024
# What is larger goes out in parts, so that the loop is not held up.
LARGE_BYTES = 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_S = 5.0
KEEP_ALIVE_S = 30.0
MAX_RETRY_AFTER_S = 60.0
USER_AGENT = "Signpost"


def session() -> aiohttp.ClientSession:
    """Return the client of a running event loop: no cookies, proxies, redirects or surprises."""
    return aiohttp.ClientSession(
        connector=Connector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
    )


class Connector(aiohttp.TCPConnector):
    """Tells whether a connection was used before, for a fifth of what aiohttp's tracing costs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: WeakSet[object] = WeakSet()

    async def connect(self, *args: Any, **options: Any) -> Connection:
        connection = await super().connect(*args, **options)
        is_reused.set(connection.protocol in self._used)
        self._used.add(connection.protocol)
        return connection


# Whether the connection that this task was given last had been used before.
is_reused: ContextVar[bool] = ContextVar("is_reused")


@dataclass(frozen=True, slots=True)
class Call:
    """What is posted: JSON, and the headers beside the usual ones."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@asynccontextmanager
async def post(
    client: aiohttp.ClientSession, job: Job, call: Call
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """POST JSON and give the answer once it is a success. Raises as Upstream's methods do.

    An answer that is not read to its end is cut off: the server learns at once that nobody
    listens any more.
    """
    response = None
    try:
        response = await _send(client, job, call)
        del job, call  # a stream may last, and a prompt be long
        if response.status != 200:
            raise await _failure(response)
        yield response
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise UpstreamServiceError(describe(error)) from error
    finally:
        if response is not None and not response.closed:
            response.close()


async def _send(
    client: aiohttp.ClientSession, job: Job, call: Call
) -> aiohttp.ClientResponse:
    """POST; when a kept connection turns out to be closed, once more on another one."""
    headers = {
        "Content-Type": "application/json",
        "X-Request-Id": job.request_id,
        **call.headers,
    }
    timeout = aiohttp.ClientTimeout(total=None, connect=job.timeouts.connect_s)
    while True:
        is_reused.set(False)
        try:
            return await client.post(
                call.url,
                data=call.body if len(call.body) < LARGE_BYTES else BytesIO(call.body),
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
            )
        except (
            aiohttp.ServerDisconnectedError,
            ConnectionError,
            aiohttp.ClientOSError,
        ):
            # RFC 9112 section 9.3.1: a server may close an idle connection at any time.
            # Each turn uses up one kept connection; on a fresh one this is a failure.
            if not is_reused.get():
                raise


async def _failure(response: aiohttp.ClientResponse) -> ChatError:
    """Return what an answer other than 200 stands for."""
    try:
        with within(ERROR_BODY_S):
            text = await _read(response, MAX_ERROR_BYTES)
    except (TimeoutError, aiohttp.ClientError, OSError):
        text = b""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text[:1000].decode(errors="replace")
    failure = failure_in(value, status=response.status)
    if isinstance(failure, UpstreamServiceError):
        failure.retry_after = retry_after(response.headers.get("Retry-After", ""))
    return failure


async def _read(response: aiohttp.ClientResponse, at_most: int) -> bytes:
    text = bytearray()
    while len(text) < at_most:
        piece = await response.content.read(at_most - len(text))
        if not piece:
            break
        text += piece
    return bytes(text)


def retry_after(value: str) -> float:
    """Return a `Retry-After` in seconds, at most a minute; dates and nonsense are 0."""
    if value.isascii() and value.isdigit():
        return min(float(value[:6]), MAX_RETRY_AFTER_S)
    return 0.0


async def whole(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer. Raises UpstreamServiceError: too large."""
    text = bytearray()
    while piece := await response.content.readany():
        text += piece
        if len(text) > MAX_ANSWER_BYTES:
            raise UpstreamServiceError("the answer is too large")
    return bytes(text)


async def events(response: aiohttp.ClientResponse) -> AsyncGenerator[list[bytes]]:
    """Yield the data of a stream's events, those together that arrived together."""
    reader = EventReader()
    content = response.content
    while data := await content.readany():
        yield reader.feed(data)


def describe(error: BaseException) -> str:
    """Return what went wrong for the log, without the address, which may hold a secret."""
    cause = getattr(error, "os_error", None) or error.__cause__ or error
    return f"{type(error).__name__} ({type(cause).__name__})"
