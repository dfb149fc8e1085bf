"""Synchronous Django behind an ASGI server, in a fixed pool of threads.

A request goes to a thread once its body has been received, and a response of one part comes
back in one step. So a slow client occupies no thread, and a request costs two thread switches.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import (
    Awaitable,
    Callable,
    Generator,
    Iterable,
    MutableMapping,
)
from contextlib import suppress
from functools import partial
from typing import IO, Any

from config.serving.bodies import Bodies, Body, ClientGoneError, Message, Receive
from webhooks_core.network.deadlines import within
from webhooks_core.web import event_loop
from webhooks_core.web.thread_pool import ThreadPool

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Environ = dict[str, Any]
Part = tuple[list[Message], bool]
Parts = Generator[Part, None, None]
Begun = tuple[Parts, list[Message], bool]
WSGIApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# Collected before a part is passed to the event loop.
PART_BYTES = 64 * 1024
# How long a client may take to read a part of a streaming response, and all of it.
STALL_S = 60.0
RESPONSE_S = 600.0


class WSGIBridge:
    """Runs a WSGI application (PEP 3333) for an ASGI server."""

    def __init__(
        self,
        application: WSGIApplication,
        *,
        threads: int,
        bodies: Bodies,
        largest_body: Callable[[str], int],
    ) -> None:
        """`largest_body` returns how many bytes are accepted at a path."""
        self._application = application
        self._pool = ThreadPool(threads, name="web")
        self._bodies, self._largest_body = bodies, largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI's type http."""
        try:
            body = await self._receive_body(scope, receive)
        except ClientGoneError:
            return
        except TimeoutError:
            await send(_head(408, [(b"connection", b"close")]))
            await send(_part(b"", more=False))
            return
        with body:
            env = environ(scope, body.file, body.length)
            parts, messages, is_last = await self._begin(env)
            if (work := env.pop(event_loop.WORK, None)) is not None:
                env[event_loop.RESULT] = await work()
                body.file.seek(0)
                parts, messages, is_last = await self._begin(env)
            if is_last:
                for message in messages:
                    await send(message)
            else:
                await self._stream(parts, messages, receive, send)

    async def _begin(self, env: Environ) -> Begun:
        parts = responses(self._application, env)
        return parts, *await self._pool.run(partial(next, parts))

    async def _receive_body(self, scope: Scope, receive: Receive) -> Body:
        """Return the body of a request; of one that is too large, only the length.

        The application refuses such a body by its length, in its own format. Raises
        ClientGoneError, and TimeoutError for a body that does not end.
        """
        declared = _declared_length(scope)
        limit = self._largest_body(scope["path"])
        if declared is None or declared > limit:
            return Body(self._bodies, limit, length=declared or 0)
        return await self._bodies.receive(receive, limit=limit)

    async def _stream(
        self, parts: Parts, messages: list[Message], receive: Receive, send: Send
    ) -> None:
        """Send each part once the client has accepted the one before.

        A thread makes one part at a time, so that none waits for a client. Raises TimeoutError for
        a client that does not read.
        """
        gone, is_last = asyncio.create_task(_disconnected(receive)), False
        try:
            with within(RESPONSE_S):
                while not gone.done():
                    with within(STALL_S):
                        await _send_all(messages, send)
                    if is_last:
                        return
                    messages, is_last = await self._pool.run(partial(next, parts))
        except ClientGoneError:
            return
        finally:
            gone.cancel()
            await self._pool.run(partial(_close, parts))

    def close(self) -> None:
        self._pool.close()


async def _send_all(messages: Iterable[Message], send: Send) -> None:
    """Give the server a part of the response. Raises ClientGoneError.

    uvloop refuses to write to a connection that is closed, before uvicorn knows that it is.
    """
    try:
        for message in messages:
            await send(message)
    except RuntimeError as error:
        raise ClientGoneError from error


async def _disconnected(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _declared_length(scope: Scope) -> int | None:
    """Return a body's Content-Length: 0 when it is unknown, None without a body."""
    length = None if scope["http_version"].startswith("1") else 0
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:18])
        if name == b"transfer-encoding":
            length = 0
    return length


def environ(scope: Scope, body: IO[bytes], length: int) -> Environ:
    """Return PEP 3333's environ of a request.

    Headers with an underscore are dropped: `X_Tenant_Id` could not be told from `X-Tenant-Id`.
    """
    host, port = scope.get("server") or ("localhost", 80)
    peer, _ = scope.get("client") or ("", 0)
    env: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "REMOTE_ADDR": peer,
        "CONTENT_LENGTH": str(length),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        event_loop.OFFERED: True,
    }
    for raw_name, value in scope["headers"]:
        name = raw_name.decode("latin-1").upper().replace("-", "_")
        if b"_" not in raw_name and name != "CONTENT_LENGTH":
            key = name if name == "CONTENT_TYPE" else f"HTTP_{name}"
            text = value.decode("latin-1")
            env[key] = f"{env[key]},{text}" if key in env else text
    # Without Host, Django would use SERVER_NAME.
    env.setdefault("HTTP_HOST", "")
    return env


def responses(application: WSGIApplication, env: Environ) -> Parts:
    """Call an application; yield the messages of its response in parts, True beside the last.

    A response that is complete in memory is one part: no thread waits for a slow reader. An
    empty part of a streaming one flushes what is before it.
    """
    messages: list[Message] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _: Any = None
    ) -> None:
        encoded = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]
        messages[:] = [_head(int(status.partition(" ")[0]), encoded)]

    result = application(env, start_response)
    is_streaming = getattr(result, "streaming", True)  # Django's attribute
    collected: list[bytes] = []
    size = 0
    try:
        for part in result:
            collected.append(part)
            size += len(part)
            if is_streaming and (size >= PART_BYTES or (size and not part)):
                yield [*messages, _part(b"".join(collected), more=True)], False
                messages, collected, size = [], [], 0
    finally:
        if close := getattr(result, "close", None):
            close()
    yield [*messages, _part(b"".join(collected), more=False)], True


def _close(parts: Parts) -> None:
    with suppress(ValueError):  # a thread makes a part, whose end closes the response
        parts.close()


def _head(status: int, headers: list[tuple[bytes, bytes]]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
