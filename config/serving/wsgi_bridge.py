"""Synchronous Django behind an ASGI server, in a fixed pool of threads.

A request goes to a thread once its body has been received, and a response of one part comes
back in one step. So a slow client occupies no thread, and a request costs two thread switches.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Generator, Iterable, MutableMapping
from contextlib import suppress
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from webhooks_core.web.thread_pool import ThreadPool

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Environ = dict[str, Any]
WSGIApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
# The messages of a part of a response, and whether it is the last part.
Parts = Generator[tuple[list[Message], bool], None, None]

IN_MEMORY_BYTES = 1024 * 1024  # what a body has above this is stored on the disk
PART_BYTES = 64 * 1024  # collected before a part is passed to the event loop
RECEIVE_S, RESPONSE_S = 120.0, 600.0  # how long a client may take to send and to read


class WSGIBridge:
    """Runs a WSGI application (PEP 3333) for an ASGI server."""

    def __init__(
        self, application: WSGIApplication, threads: int, largest: Callable[[str], int]
    ) -> None:
        """`largest` returns how many bytes of a body are accepted at a path."""
        self._application, self._largest = application, largest
        self._pool = ThreadPool(threads, name="web")
        self.close = self._pool.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI's type http."""
        with SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
            try:
                limit = self._largest(scope["path"])
                length = await _receive_body(scope, receive, file, limit)
            except ConnectionError:
                return
            except TimeoutError:
                await send(_head(408, [(b"connection", b"close")]))
                await send(_part(b"", more=False))
                return
            await self._respond(environ(scope, file, length), send)

    async def _respond(self, env: Environ, send: Send) -> None:
        """Send each part once the client has accepted the one before.

        A thread makes one part at a time, so that none waits for a client. Raises TimeoutError for
        a client that does not read.
        """
        parts, is_last = responses(self._application, env), False
        try:
            async with asyncio.timeout(RESPONSE_S):
                while not is_last:
                    messages, is_last = await self._pool.run(partial(next, parts))
                    for message in messages:
                        await send(message)
        finally:
            if not is_last:
                await self._pool.run(partial(_close, parts))


async def _receive_body(
    scope: Scope, receive: Receive, file: IO[bytes], limit: int
) -> int:
    """Store a body and return its length; of one that is too large, only that.

    The application refuses such a body by its length, in its own format. Raises ConnectionError
    when the client has gone, and TimeoutError for a body that does not end.
    """
    headers = dict(scope["headers"])
    declared = int(headers.get(b"content-length", b"0")[:18])
    if declared > limit or not (declared or b"transfer-encoding" in headers):
        return declared
    length, is_complete = 0, False
    async with asyncio.timeout(RECEIVE_S):
        while not is_complete and length <= limit:
            message = await receive()
            if message["type"] != "http.request":
                raise ConnectionError
            length += file.write(message.get("body", b""))
            is_complete = not message.get("more_body")
    file.seek(0)
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
    }
    for raw_name, value in scope["headers"]:
        name = raw_name.decode("latin-1").upper().replace("-", "_")
        if b"_" not in raw_name and name != "CONTENT_LENGTH":
            key = name if name == "CONTENT_TYPE" else f"HTTP_{name}"
            text = value.decode("latin-1")
            env[key] = f"{env[key]},{text}" if key in env else text
    env.setdefault("HTTP_HOST", "")  # without one, Django would use SERVER_NAME
    return env


def responses(application: WSGIApplication, env: Environ) -> Parts:
    """Call an application; yield its response in parts: one if it is complete in memory."""
    messages: list[Message] = []

    def start_response(status: str, headers: Iterable[tuple[str, str]]) -> None:
        encoded = [tuple(text.encode("latin-1") for text in each) for each in headers]
        messages[:] = [_head(int(status.partition(" ")[0]), encoded)]

    result = application(env, start_response)
    is_streaming = getattr(result, "streaming", True)  # Django's attribute
    body = bytearray()
    try:
        for part in result:
            body += part
            if is_streaming and len(body) >= PART_BYTES:
                yield [*messages, _part(bytes(body), more=True)], False
                messages, body = [], bytearray()
    finally:
        if close := getattr(result, "close", None):
            close()
    yield [*messages, _part(bytes(body), more=False)], True


def _close(parts: Parts) -> None:
    with suppress(ValueError):  # a thread makes a part, whose end closes the response
        parts.close()


def _head(status: int, headers: list[Any]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
