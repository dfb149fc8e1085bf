"""Synchronous Django behind an ASGI server, in a fixed pool of threads.

A request goes to a thread once its body has been received, and a response of one part comes
back in one step. So a slow client occupies no thread, and a request costs two thread switches.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import IO, Any

from webhooks_core.network.deadlines import within
from webhooks_core.thread_pool import ThreadPool

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Environ = dict[str, Any]
WSGIApplication = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

# Larger bodies are stored on the disk; no view accepts more than LARGEST_BYTES.
IN_MEMORY_BYTES = 1024 * 1024
LARGEST_BYTES = 32 * 1024 * 1024
# Collected before a part is passed to the event loop.
PART_BYTES = 64 * 1024
RECEIVE_S = 120.0
STALL_S = 60.0


class ClientGoneError(Exception):
    """The client disconnected before its request was complete."""


class WSGIBridge:
    """Runs a WSGI application (PEP 3333) for an ASGI server."""

    def __init__(self, application: WSGIApplication, *, threads: int) -> None:
        self._application = application
        self._pool = ThreadPool(threads, name="web")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request of ASGI's type http."""
        try:
            body, length = await _body(scope, receive)
        except ClientGoneError:
            return
        except TimeoutError:
            headers = [(b"connection", b"close")]
            await send(
                {"type": "http.response.start", "status": 408, "headers": headers}
            )
            await send(_part(b"", more=False))
            return
        with body:
            call = Call(self._application, environ(scope, body, length), send)
            head, first, is_all = await self._pool.run(call.begin)
            await send(head)
            await send(_part(first, more=not is_all))
            if not is_all:
                loop = asyncio.get_running_loop()
                await self._pool.run(partial(call.finish, loop))

    def close(self) -> None:
        self._pool.close()


async def _body(scope: Scope, receive: Receive) -> tuple[IO[bytes], int]:
    """Return a request's body and its length; of a body that is too large, only the length.

    The application refuses such a body by its length, in its own format. Raises
    ClientGoneError, and TimeoutError for a body that does not end.
    """
    declared = _declared_length(scope)
    if declared is None:
        return BytesIO(), 0
    if declared > LARGEST_BYTES:
        return BytesIO(), declared
    with within(RECEIVE_S):
        return await _receive_body(receive)


async def _receive_body(receive: Receive) -> tuple[IO[bytes], int]:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        content = message.get("body", b"")
        return BytesIO(content if len(content) <= LARGEST_BYTES else b""), len(content)
    body = SpooledBody(IN_MEMORY_BYTES)
    try:
        length = await _collect(message, receive, body)
    except BaseException:
        body.close()
        raise
    return body, length


async def _collect(message: Message, receive: Receive, body: SpooledBody) -> int:
    """Store a body that arrives in parts; return its length. Raises ClientGoneError."""
    length = 0
    while message["type"] == "http.request":
        length += len(message.get("body", b""))
        if length <= LARGEST_BYTES:
            body.store(message.get("body", b""))
        if not message.get("more_body"):
            body.rewind()
            return length
        message = await receive()
    raise ClientGoneError


class SpooledBody(tempfile.SpooledTemporaryFile[bytes]):
    """A body that is too large for memory; reading it raises the error of storing it.

    So the application answers in its own format when the disk is full or missing.
    """

    _failure: OSError | None = None

    def store(self, part: bytes) -> None:
        if self._failure is None:
            try:
                self.write(part)
            except OSError as error:
                self._fail(error)

    def rewind(self) -> None:
        try:
            self.seek(0)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        """Close the file, which would otherwise write its buffer again."""
        self._failure = error
        with suppress(OSError):
            self._file.close()
        self._file = BytesIO()

    def read(self, *args: int) -> bytes:
        if self._failure is not None:
            raise self._failure
        return super().read(*args)


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
    peer, peer_port = scope.get("client") or ("", 0)
    env: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "REMOTE_ADDR": peer,
        "REMOTE_PORT": str(peer_port),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        if b"_" in raw_name:
            continue
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        env[key] = f"{env[key]},{value}" if key in env else value
    env["CONTENT_LENGTH"] = str(length)
    # Without Host, Django would use SERVER_NAME.
    env.setdefault("HTTP_HOST", "")
    return env


class Call:
    """One call of the application; its methods run in a thread of the pool."""

    def __init__(self, application: WSGIApplication, env: Environ, send: Send) -> None:
        self._application, self._environ, self._send = application, env, send
        self._head: Message = {}
        self._result: Iterable[bytes] = ()
        self._parts: Iterator[bytes] = iter(())

    def begin(self) -> tuple[Message, bytes, bool]:
        """Return the head, the first part, and True if that is the whole response."""
        self._result = self._application(self._environ, self._start_response)
        try:
            self._parts = iter(self._result)
            first, is_all = self._next_part()
        except BaseException:
            self._close()
            raise
        if is_all:
            self._close()
        return self._head, first, is_all

    def finish(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send the other parts, each once the client has accepted the previous one."""
        try:
            is_all = False
            while not is_all:
                part, is_all = self._next_part()
                sending = self._send(_part(part, more=not is_all))
                asyncio.run_coroutine_threadsafe(sending, loop).result(STALL_S)  # type: ignore[arg-type]
        finally:
            self._close()

    def _next_part(self) -> tuple[bytes, bool]:
        """Return the next part, and True if it is the last.

        A response that is complete in memory is one part: no thread waits for a slow reader.
        """
        is_streaming = getattr(self._result, "streaming", True)  # Django's attribute
        parts: list[bytes] = []
        size = 0
        for part in self._parts:
            parts.append(part)
            size += len(part)
            if is_streaming and size >= PART_BYTES:
                return b"".join(parts), False
        return b"".join(parts), True

    def _start_response(
        self, status: str, headers: list[tuple[str, str]], _: Any = None
    ) -> None:
        self._head = {
            "type": "http.response.start",
            "status": int(status.partition(" ")[0]),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in headers
            ],
        }

    def _close(self) -> None:
        close = getattr(self._result, "close", None)
        if close is not None:
            close()


def _part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
