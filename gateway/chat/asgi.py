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
from functools import partial
from typing import Any

import structlog

from gateway.chat.context import CLIENT_GONE
from gateway.chat.http_messages import (
    MAX_BODY_BYTES,
    ChatRequest,
    ChatResponse,
    ClientGoneError,
    check_length,
    join_headers,
)
from gateway.chat.service import Service
from gateway.chat.timing import KeepAlive, StreamTimeout
from webhooks_core.network.deadlines import within
from webhooks_core.web.errors import BadRequestError, PayloadTooLargeError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

# How long a client may take to send its request, and to take the next chunk.
RECEIVE_S = 60.0
STALL_S = 60.0

plain_log = logging.getLogger("signpost.http")
log = structlog.stdlib.get_logger("signpost.http")


async def respond(
    service: Service,
    scope: Scope,
    receive: Receive,
    send: Send,
    extra_headers: Iterable[Header] = (),
) -> None:
    """Answer one request of ASGI's type http; it ends at once when the client leaves."""
    started = time.perf_counter()
    headers = join_headers(scope["headers"])
    client = Client(headers.get("content-length", ""), receive)
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
        headers.clear()  # a stream may last: thousands of them need the room
        request_id = (b"X-Request-Id", request.request_id.encode())
        await _send(response, (*extra_headers, request_id), send)
    except (ClientGoneError, TimeoutError):
        # The client has disconnected or does not read: the server closes the connection.
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


class Client:
    """The client of one request: its body, and its connection."""

    __slots__ = ("_has_left", "_length", "_receive", "_task", "_watcher")

    def __init__(self, length: str, receive: Receive) -> None:
        self._length, self._receive = length, receive
        self._task = asyncio.current_task()
        self._watcher: asyncio.Task[None] | None = None
        self._has_left = False

    async def read(self) -> bytes:
        """Return the body, and from then on cancel the request when the client leaves.

        Raises ClientGoneError, PayloadTooLargeError, BadRequestError: it took too long.
        """
        check_length(self._length)
        try:
            with within(RECEIVE_S):
                body = await self._read()
        except TimeoutError as error:
            # What still arrives belongs to this request: the connection cannot be used again.
            raise BadRequestError(
                "The body took too long to arrive.", headers={"Connection": "close"}
            ) from error
        self._watcher = asyncio.create_task(self._watch())
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

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._has_left = True
        if self._task is not None:
            self._task.cancel()

    def accept_cancellation(self) -> None:
        """End the cancellation here if the client has left, else pass it on."""
        if not self._has_left:
            raise asyncio.CancelledError
        if self._task is not None:
            self._task.uncancel()

    def release(self) -> None:
        """Stop watching the client: the request is over."""
        if self._watcher is not None:
            self._watcher.cancel()


async def _send(
    response: ChatResponse, extra_headers: Iterable[Header], send: Send
) -> None:
    if response.rest is None:
        await _pass_on(_start(response, extra_headers), send)
        await _pass_on({"type": "http.response.body", "body": response.body}, send)
        return
    async with aclosing(response.rest) as rest:
        await _pass_on(_start(response, extra_headers), send)
        comment = partial(_send_comment, send, response.keep_alive)
        with StreamTimeout(None) as timer, KeepAlive(comment) as keep_alive:
            await _send_part(response.body, send, timer)
            keep_alive.start()
            async for part in rest:
                keep_alive.stop()
                await _send_part(part, send, timer)
                keep_alive.start()
    await _pass_on({"type": "http.response.body", "body": b""}, send)


async def _pass_on(message: Message, send: Send) -> None:
    """Give the server a part of the response. Raises ClientGoneError.

    Servers drop what is sent to a client that has left, but not always: uvloop refuses to write
    to a connection that is closed.
    """
    try:
        await send(message)
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


async def _send_comment(send: Send, comment: bytes) -> None:
    """Send a comment; if the client has left, the next part or the watcher notices."""
    with suppress(ClientGoneError):
        await _pass_on(
            {"type": "http.response.body", "body": comment, "more_body": True}, send
        )


async def _send_part(part: bytes, send: Send, timer: StreamTimeout) -> None:
    """Send a part; the next is read from the upstream only when there is room again."""
    message = {"type": "http.response.body", "body": part, "more_body": True}
    timer.start(STALL_S)
    await _pass_on(message, send)
    timer.stop()
