"""uvicorn's connections: an answer in one piece, an end when a client leaves something unfinished.

uvicorn writes the head of an answer by itself, which costs a system call and wakes the client
for nothing. It waits without an end for the rest of a request's head, takes a head of any size,
and a connection that it closes stays for as long as the client does not read what was sent.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, cast

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

# A client that does nothing of what it is waited for between two looks is cut off.
LOOK_EVERY_S = 60.0
MAX_HEAD_BYTES = 128 * 1024


class Answers(asyncio.Transport):
    """A transport that holds what is written until more comes, at most to the loop's next turn."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__()
        self._transport, self._loop = transport, loop
        self._held = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data:
            return
        if self._held:
            self._transport.writelines((self._held, data))
            self._held = b""
        else:
            self._held = bytes(data)
            self._loop.call_soon(self._release)

    def _release(self) -> None:
        held, self._held = self._held, b""
        if held and not self._transport.is_closing():
            self._transport.write(held)

    def get_write_buffer_size(self) -> int:
        return len(self._held) + self._transport.get_write_buffer_size()

    def close(self) -> None:
        self._release()
        self._transport.close()

    def abort(self) -> None:
        self._held = b""
        self._transport.abort()


class Connection(HttpToolsProtocol):
    """One connection. While a request is answered, time is the application's business."""

    _head_bytes = 0
    _seen: tuple[int, object] | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Answers(transport, self.loop))
        self._look_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        scope = cast("HTTPScope | None", self.scope)
        is_head = scope is not None and "path" not in scope
        self._head_bytes = self._head_bytes + len(data) if is_head else 0
        if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def _look_later(self) -> None:
        self._seen = self._awaited()
        self._timer = self.loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        awaited, seen = self._awaited(), self._seen
        if awaited and seen and awaited[0] == seen[0] and awaited[1] is seen[1]:
            self._reset()
        else:
            self._look_later()

    def _reset(self) -> None:
        """Forget the connection, and have the kernel forget what it would still send."""
        client = self.transport.get_extra_info("socket")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _awaited(self) -> tuple[int, object] | None:
        """Return what the client is waited for: to read so many bytes, or to go on with a request.

        None when it is not its turn, or when uvicorn's own timer runs, between requests.
        """
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_over = cycle is None or cycle.response_complete
        if not is_over and not self.transport.is_closing():
            return None
        unread = self.transport.get_write_buffer_size()
        if unread == 0 and self.timeout_keep_alive_task is not None:
            return None
        return unread, self.scope
