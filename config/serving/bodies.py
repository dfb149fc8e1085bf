"""Bodies of requests on their way: no thread waits for one, and together they have a limit.

Who sends a body is known only when all of it is here. So the limits hold for strangers: one for
each path, one for the time, and one for the bytes of all bodies in this process.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from io import BytesIO
from types import TracebackType
from typing import IO, Any, Self

from webhooks_core.network.deadlines import Deadline, within

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

# What a body has above this is stored on the disk.
IN_MEMORY_BYTES = 1024 * 1024
TOTAL_BYTES = 128 * 1024 * 1024
RECEIVE_S = 120.0


class ClientGoneError(Exception):
    """The client disconnected before its request was complete."""


class SpooledBody(tempfile.SpooledTemporaryFile[bytes]):
    """A body that may be too large for memory; reading it raises the error of storing it.

    So the application answers in its own format when the disk is full or missing.
    """

    is_dropped = False
    _failure: OSError | None = None

    def store(self, part: bytes) -> None:
        try:
            self.write(part)
        except OSError as error:
            self.drop(error)

    def rewind(self) -> None:
        try:
            self.seek(0)
        except OSError as error:
            self.drop(error)

    def drop(self, error: OSError | None = None) -> None:
        """Close the file, which would otherwise write its buffer again; reading raises the error."""
        self.is_dropped, self._failure = True, error
        with suppress(OSError):
            self._file.close()
        self._file = BytesIO()

    def read(self, *args: int) -> bytes:
        if self._failure is not None:
            raise self._failure
        return super().read(*args)


class Bodies:
    """The bodies of one process, at most `total` bytes of those that arrive in parts."""

    def __init__(self, total: int = TOTAL_BYTES) -> None:
        self._left = total
        # The one that has been arriving for the longest time comes first.
        self._arriving: dict[Body, Deadline] = {}

    async def receive(self, receive: Receive, *, limit: int) -> Body:
        """Return a whole body; of one that is larger than the limit, only the length.

        Raises ClientGoneError, and TimeoutError for a body that takes too long: RECEIVE_S, or
        less if newer bodies need the room.
        """
        body = Body(self, limit)
        with within(RECEIVE_S) as deadline:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                body.take_whole(message.get("body", b""))
                return body
            self._arriving[body] = deadline
            try:
                await body.collect(message, receive)
            except BaseException:
                body.close()
                raise
            finally:
                self._arriving.pop(body, None)
        return body

    def reserve(self, size: int, body: Body) -> bool:
        """Take room for a part of a body; return False if there is none.

        The body that has been arriving for the longest time gives way: it is the likeliest never
        to end.
        """
        while self._left < size:
            oldest = next(iter(self._arriving), body)
            if oldest is body:
                return False
            self._arriving.pop(oldest).end()
            oldest.close()
        self._left -= size
        return True

    def release(self, size: int) -> None:
        self._left += size


class Body:
    """A body as a context manager that gives its room back: `file`, and `length` in bytes."""

    def __init__(self, bodies: Bodies, limit: int, *, length: int = 0) -> None:
        self._bodies, self._limit = bodies, limit
        self._reserved = 0
        self.length = length
        self.file: IO[bytes] = BytesIO()

    def take_whole(self, content: bytes) -> None:
        """Take a body that came in one part: it is small."""
        self.length = len(content)
        if self.length <= self._limit:
            self.file = BytesIO(content)

    async def collect(self, message: Message, receive: Receive) -> None:
        """Store a body that arrives in parts. Raises ClientGoneError."""
        file = self.file = SpooledBody(IN_MEMORY_BYTES)
        while message["type"] == "http.request":
            self._store(message.get("body", b""), file)
            if not message.get("more_body"):
                file.rewind()
                return
            message = await receive()
        raise ClientGoneError

    def _store(self, part: bytes, file: SpooledBody) -> None:
        self.length += len(part)
        if file.is_dropped:
            return
        if self.length > self._limit:
            self._release()
            file.drop()
        elif self._bodies.reserve(len(part), self):
            self._reserved += len(part)
            file.store(part)
        else:
            self._release()
            file.drop(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def _release(self) -> None:
        self._bodies.release(self._reserved)
        self._reserved = 0

    def close(self) -> None:
        """Give the room back; harmless when it was given back already."""
        self._release()
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
