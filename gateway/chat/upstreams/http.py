"""HTTP calls of upstreams: one pooled client per event loop, limits, and errors."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDict

from gateway import json
from gateway.chat.errors import ChatError, UpstreamServiceError
from gateway.chat.failures import MAX_CHARACTERS, failure_in
from gateway.chat.sse import BYTE_ORDER_MARK, EventReader
from gateway.chat.upstreams.base import Call
from webhooks_core.network.certificates import client_context
from webhooks_core.network.deadlines import within
from webhooks_core.network.errors import tls_reason
from webhooks_core.network.retry_after import retry_after, whole_seconds

MAX_BODY_BYTES = 32 * 1024 * 1024
# A larger body goes out in parts, so that it does not block the loop.
LARGE_BYTES = 1024 * 1024
# FastAPI repeats the request in its errors.
MAX_ERROR_BYTES = 1024 * 1024
ERROR_BODY_S = 5.0
KEEP_ALIVE_S = 30.0
MAX_RETRY_AFTER_S = 60.0
PASSED_ON = frozenset({"request-id", "x-should-retry"})
# A close that is seen so soon after sending happened before it: the server did no work.
CLOSE_SEEN_S = 0.1
USER_AGENT = "Signpost"
MILLISECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]+)?")
FRACTION = re.compile(r"[0-9]{1,7}\.[0-9]+")


def session() -> aiohttp.ClientSession:
    """Return the client of a running event loop, without cookies, proxies and redirects."""
    return aiohttp.ClientSession(
        connector=Connector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE_S,
            ttl_dns_cache=30,
            ssl=client_context(),
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        # Some servers compress in spite of `identity`. aiohttp decompresses in steps of 64 KiB,
        # so that the limits below hold for the decompressed body.
        auto_decompress=True,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None),
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
    )


class UpstreamConnection(ResponseHandler):
    """A connection that records whether its server may have worked on the last request."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._requests = 0
        self._sending_since = 0.0
        self._has_answered = False
        self.is_idle = False

    def begin(self) -> None:
        """Note that a request is sent from now on."""
        self._requests += 1
        self._sending_since, self._has_answered = self._loop.time(), False
        self.is_idle = False

    def data_received(self, data: bytes) -> None:
        # aiohttp also calls this without data, to continue with its buffer.
        self._has_answered = self._has_answered or bool(data)
        if self.is_idle and data:
            # There is no request, and the next one must not get this as its response.
            self.abort()
        else:
            super().data_received(data)
            if self._payload is not None and (failure := self.exception()):
                # aiohttp does not end the reader's wait when parsing fails.
                self._payload.set_exception(aiohttp.ClientPayloadError(repr(failure)))

    @property
    def was_closed_while_idle(self) -> bool:
        """True if this connection, which just ended, was closed before the request.

        RFC 9112 section 9.3.1: a server may close an idle connection at any time.
        """
        duration = self._loop.time() - self._sending_since
        return (
            self._requests > 1 and not self._has_answered and duration <= CLOSE_SEEN_S
        )


class Connector(aiohttp.TCPConnector):
    """Stores in `used` the connection that a task's request goes over."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # aiohttp has no public option for the class of its connections.
        self._factory = partial(UpstreamConnection, loop=self._loop)  # type: ignore[assignment]

    async def connect(self, *args: Any, **options: Any) -> Connection:
        connection = await super().connect(*args, **options)
        if isinstance(connection.protocol, UpstreamConnection):
            connection.protocol.begin()
            used.set(connection.protocol)
        return connection

    def _release(self, key: Any, protocol: ResponseHandler, **options: Any) -> None:
        if isinstance(protocol, UpstreamConnection):
            protocol.is_idle = True
        super()._release(key, protocol, **options)


# The connection that this task got last.
used: ContextVar[UpstreamConnection | None] = ContextVar("used", default=None)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is posted: JSON, and headers besides the usual ones."""

    url: str
    headers: Mapping[str, str]
    body: bytes


Posting = AbstractAsyncContextManager[aiohttp.ClientResponse]


@asynccontextmanager
async def post(
    client: aiohttp.ClientSession, call: Call, prepared: Prepared, *, keeps_errors: bool
) -> AsyncGenerator[aiohttp.ClientResponse]:
    """POST JSON and yield the response if it is a success. Raises as Upstream's methods do.

    `keeps_errors`: the client speaks the server's API. It gets the server's errors as they are,
    and some of its headers. Leaving the block before the end of the response closes the
    connection, so that the server can stop immediately.
    """
    response = None
    try:
        response = await _send(client, call, prepared)
        if response.status != 200:
            raise await _failure(response, is_kept=keeps_errors)
        if keeps_errors:
            call.context.response_headers = passed_on(response.headers)
        del call, prepared  # a stream may last, and a prompt be long
        yield response
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise UpstreamServiceError(describe(error)) from error
    finally:
        if response is not None and not response.closed:
            response.close()


async def _send(
    client: aiohttp.ClientSession, call: Call, prepared: Prepared
) -> aiohttp.ClientResponse:
    """POST; if a kept connection was closed while idle, POST again on another one."""
    headers: Mapping[str, str] = {
        "Content-Type": "application/json",
        "X-Request-Id": call.context.request_id,
        **prepared.headers,
    }
    if call.entry.extra_headers:
        headers = CIMultiDict(headers)  # so that they replace ours of another case
        headers.update(call.entry.extra_headers)
    proxy = call.entry.proxy or None
    timeout = aiohttp.ClientTimeout(total=None, connect=call.entry.timeouts.connect_s)
    while True:
        used.set(None)
        try:
            return await client.post(
                prepared.url,
                data=prepared.body
                if len(prepared.body) < LARGE_BYTES
                else BytesIO(prepared.body),
                headers=headers,
                allow_redirects=False,
                proxy=proxy,
                timeout=timeout,
            )
        except (
            aiohttp.ServerDisconnectedError,
            ConnectionError,
            aiohttp.ClientOSError,
        ):
            # Each try uses up one kept connection; on a new one this is a failure.
            connection = used.get()
            if connection is None or not connection.was_closed_while_idle:
                raise


async def _failure(response: aiohttp.ClientResponse, *, is_kept: bool) -> ChatError:
    """Return the failure that a response other than 200 stands for."""
    try:
        with within(ERROR_BODY_S):
            body = await _read(response, MAX_ERROR_BYTES)
    except (TimeoutError, aiohttp.ClientError, OSError):
        body = b""
    try:
        value = json.loads(body.removeprefix(BYTE_ORDER_MARK))
    except ValueError:
        value = body[:MAX_CHARACTERS].decode(errors="replace")
    failure = failure_in(value, status=response.status)
    seconds, pause, whole = pause_of(response.headers)
    failure.upstream = replace(failure.upstream, retry_after=pause, retry_after_s=whole)
    if is_kept and isinstance(value, dict):  # else it is a page of a proxy, perhaps
        kept = response.status, body, passed_on(response.headers)
        failure.upstream = replace(failure.upstream, response=kept)
    if isinstance(failure, UpstreamServiceError):
        failure.retry_after = min(seconds, MAX_RETRY_AFTER_S)
    return failure


def passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response that clients of its own API read.

    Not those that name the operator's account.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    passed = {
        name: value
        for name, value in lower.items()
        if name in PASSED_ON
        or (name.startswith("anthropic-") and not name.endswith("-id"))
    }
    if pause := pause_of(headers)[2]:
        passed["Retry-After"] = pause
    return passed


def pause_of(headers: Mapping[str, str]) -> tuple[float, str, str]:
    """Return the pause that a server asks for: in seconds, as it gave it, and in whole seconds.

    Vendors use seconds, with a fraction too, dates, and milliseconds.
    """
    milliseconds, text = (
        headers.get("retry-after-ms", ""),
        headers.get("Retry-After", ""),
    )
    if MILLISECONDS.fullmatch(milliseconds):
        seconds = float(milliseconds) / 1000
    elif FRACTION.fullmatch(text):
        seconds = float(text)
    else:
        seconds, pause = retry_after(text)
        return seconds, pause, whole_seconds(text)
    whole = str(math.ceil(seconds))
    return seconds, whole, whole


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    while len(body) < limit and (
        part := await response.content.read(limit - len(body))
    ):
        body += part
    return bytes(body)


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of a response. Raises UpstreamServiceError: too large."""
    body = bytearray()
    while part := await response.content.readany():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise UpstreamServiceError("the answer is too large")
    return bytes(body.removeprefix(BYTE_ORDER_MARK))


async def events(
    response: aiohttp.ClientResponse, kind: type[EventReader] = EventReader
) -> AsyncGenerator[list[bytes]]:
    """Yield the data of a stream's events, those together that arrived together."""
    reader = kind()
    content = response.content
    try:
        while data := await content.readany():
            yield reader.feed(data)
        yield reader.end()
    except aiohttp.ClientError:
        # aiohttp buffers what arrived before the connection broke; no public method reads it.
        if rest := content._read_nowait(-1):  # noqa: SLF001
            yield reader.feed(rest)
        yield reader.end()
        raise


def describe(error: BaseException) -> str:
    """Describe a failure for the log, without the URL, which may contain a secret."""
    cause = getattr(error, "os_error", None) or error.__cause__ or error
    message = str(getattr(cause, "message", ""))
    encoding = message if "content-encoding" in message else ""
    reason = tls_reason(error) or encoding or type(cause).__name__
    return f"{type(error).__name__} ({reason})"[:200]
