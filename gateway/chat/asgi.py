"""Chat under ASGI, without Django's handler: no thread and no middleware between two sockets.

A request of Django's own handler enters a ThreadSensitiveContext and seven middlewares; the
chat path needs neither, since only the service's own threads use the ORM.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import aclosing, suppress
from typing import Any

import structlog
from django.conf import settings

from gateway.chat.context import CLIENT_GONE
from gateway.chat.http_messages import (
    JSON,
    MAX_BODY_BYTES,
    WRITE,
    ChatRequest,
    ChatResponse,
    ClientGoneError,
    check_length,
)
from gateway.chat.service import Service
from webhooks_core.errors import BadRequestError, PayloadTooLargeError
from webhooks_core.network.deadlines import NEVER, Deadline, of_running_loop

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

# How long a client may take to send its request, and to take the next chunk.
RECEIVE_S = 60.0
STALL_S = 60.0
JSON_LINE = b"content-type: application/json\r\n"
# Most requests are answered before. To watch them as well costs a tenth of them.
WATCHED_AFTER_S = 0.05

plain_log = logging.getLogger("signpost.http")
log = structlog.stdlib.get_logger("signpost.http")


async def respond(
    service: Service,
    scope: Scope,
    headers: dict[str, str],
    receive: Receive,
    send: Send,
    extra_headers: Iterable[Header] = (),
) -> None:
    """Answer one request, with `headers` by name; it ends at once when the client leaves."""
    started = time.perf_counter()
    client = Client(scope, headers.get("content-length", ""), receive, send)
    request = ChatRequest(
        method=scope["method"],
        path=scope["path"],
        headers=headers,
        peer=(scope.get("client") or ("",))[0],
        read=client.read,
        query=scope.get("query_string", b"").decode("latin-1"),
    )
    status = CLIENT_GONE
    try:
        response = await service.answer(request)
        status = response.status
        # A stream may last: thousands of them need the room.
        headers.clear()
        scope["headers"].clear()
        request_id = (b"X-Request-Id", request.request_id.encode())
        await client.answer(response, (*extra_headers, request_id))
    except ClientGoneError:
        status = CLIENT_GONE
    except asyncio.CancelledError:
        status = CLIENT_GONE
        client.accept_cancellation()
    finally:
        client.release()
        _log_request(request, status, started)


def _log_request(request: ChatRequest, status: int, started: float) -> None:
    """Log a request: a success at DEBUG alone, since its usage is written anyway.

    A line costs as much as a tenth of the whole request.
    """
    level = logging.INFO if status >= 400 else logging.DEBUG
    if plain_log.isEnabledFor(level):
        log.log(
            level,
            "request",
            request_id=request.request_id,
            method=request.method,
            path=request.path,
            status=status,
            ms=round((time.perf_counter() - started) * 1000, 1),
        )


class Client(Deadline):
    """The client of one request: its body, and its connection.

    This deadline begins to watch whether the client leaves; in a stream, it ends that of a client
    that does not read, and sends comments while there is nothing to read.
    """

    __slots__ = (
        *("_comment", "_commenting", "_has_left", "_is_sending", "_length", "_loop"),
        *("_is_receiving", "_receive", "_send", "_silence_s", "_scope", "_watcher"),
    )

    def __init__(self, scope: Scope, length: str, receive: Receive, send: Send) -> None:
        super().__init__(of_running_loop(), NEVER)
        self._loop = self._deadlines.loop
        self._scope, self._length = scope, length
        self._receive, self._send = receive, send
        self._watcher: asyncio.Task[None] | None = None
        self._commenting: asyncio.Task[None] | None = None
        self._comment, self._silence_s = b"", NEVER
        self._has_left = self._is_sending = self._is_receiving = False

    async def read(self) -> bytes:
        """Return the body, and from then on cancel the request when the client leaves.

        Raises ClientGoneError, PayloadTooLargeError, BadRequestError: it took too long.
        """
        check_length(self._length)
        self._is_receiving, self.until = True, self._loop.time() + RECEIVE_S
        try:
            with self:
                body = await self._read()
        except TimeoutError as error:
            # What still arrives belongs to this request: the connection cannot be used again.
            raise BadRequestError(
                "The body took too long to arrive.", headers={"Connection": "close"}
            ) from error
        self._is_receiving, self.until = False, self._loop.time() + WATCHED_AFTER_S
        self._deadlines.enter(self)
        return body

    async def _read(self) -> bytes:
        parts = bytearray()
        message = await self._receive()
        while message["type"] == "http.request":
            part: bytes = message.get("body", b"")
            if len(parts) + len(part) > MAX_BODY_BYTES:
                raise PayloadTooLargeError
            if not message.get("more_body"):
                return bytes(parts + part) if parts else part
            parts += part
            message = await self._receive()
        raise ClientGoneError

    def expire(self) -> None:
        if self._is_receiving:
            super().expire()
        elif self._watcher is None:
            self._watcher = self._loop.create_task(self._watch())
        elif self._is_sending:
            self._leave()
        else:
            self.until = self._loop.time() + self._silence_s
            self._deadlines.enter(self)
            # A client that does not read gets one comment, not one an interval.
            if self._commenting is None or self._commenting.done():
                self._commenting = self._loop.create_task(self._send_comment())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self._has_left = True
        self._task.cancel()

    def accept_cancellation(self) -> None:
        """End the cancellation here if the client has left, else pass it on."""
        if not self._has_left:
            raise asyncio.CancelledError
        self._task.uncancel()

    def release(self) -> None:
        """Stop watching the client: the request is over."""
        self._deadlines.leave(self)
        for task in (self._watcher, self._commenting):
            if task is not None:
                task.cancel()

    # ── The answer ──────────────────────────────────────────────────────────────────

    async def answer(
        self, response: ChatResponse, extra_headers: Iterable[Header]
    ) -> None:
        """Send a response. Raises ClientGoneError."""
        if response.headers is JSON and self._has_written(response, extra_headers):
            return
        if response.rest is None:
            await self._pass_on(_start(response, extra_headers))
            await self._pass_on({"type": "http.response.body", "body": response.body})
            return
        async with aclosing(response.rest) as rest:
            await self._pass_on(_start(response, extra_headers))
            self._comment = response.keep_alive
            self._silence_s = float(settings.CHAT_KEEPALIVE_S or NEVER)
            if self._watcher is None:
                self._watcher = self._loop.create_task(self._watch())
            self._deadlines.enter(self)
            await self._send_part(response.body)
            async for part in rest:
                await self._send_part(part)
        await self._pass_on({"type": "http.response.body", "body": b""})

    def _has_written(
        self, response: ChatResponse, extra_headers: Iterable[Header]
    ) -> bool:
        """Write a JSON response in one write, if the server can. Raises ClientGoneError."""
        extension = self._scope.get("extensions", {}).get(WRITE)
        if extension is None:
            return False
        lines = [b"%s: %s\r\n" % (name.lower(), value) for name, value in extra_headers]
        head = JSON_LINE + b"".join(lines)
        head += b"content-length: %d\r\n" % len(response.body)
        try:
            has_written: bool = extension["write"](
                self._scope, response.status, head, response.body
            )
        except (OSError, RuntimeError) as error:
            raise ClientGoneError from error
        return has_written

    async def _send_part(self, part: bytes) -> None:
        """Send a part; the next is read from the upstream only when there is room again."""
        message = {"type": "http.response.body", "body": part, "more_body": True}
        self._is_sending, self.until = True, self._loop.time() + STALL_S
        await self._pass_on(message)
        self._is_sending, self.until = False, self._loop.time() + self._silence_s

    async def _send_comment(self) -> None:
        """Send a comment; if the client has left, the next part or the watcher notices."""
        body, kind = self._comment, "http.response.body"
        with suppress(ClientGoneError):
            await self._pass_on({"type": kind, "body": body, "more_body": True})

    async def _pass_on(self, message: Message) -> None:
        """Give the server a part of the response. Raises ClientGoneError.

        Servers drop what is sent to a client that has left, but not always: uvloop refuses to
        write to a connection that is closed.
        """
        try:
            await self._send(message)
        except (OSError, RuntimeError) as error:
            raise ClientGoneError from error


def _start(response: ChatResponse, extra_headers: Iterable[Header]) -> Message:
    headers = [
        (name.encode(), value.encode()) for name, value in response.headers.items()
    ]
    headers.extend(extra_headers)
    if response.rest is None:
        headers.append((b"Content-Length", str(len(response.body)).encode()))
    return {
        "type": "http.response.start",
        "status": response.status,
        "headers": headers,
    }
