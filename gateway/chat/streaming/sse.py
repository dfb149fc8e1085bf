"""Server-sent events: an incremental reader of the upstreams' events, and the frame of ours."""

from __future__ import annotations

from gateway.chat.errors import UpstreamServiceError

MAX_EVENT_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def frame(payload: bytes) -> bytes:
    """Return one event; the payload must hold no line break."""
    return b"data: " + payload + b"\n\n"


class EventReader:
    """Turns reads of any size into the `data` of whole events (WHATWG HTML, sections 9.2.5 and 6).

    An event that its stream does not complete is discarded, as the standard says.
    """

    __slots__ = ("_has_begun", "_parts", "_size", "_skip_line_feed", "_tail")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._tail = b""
        self._skip_line_feed = False
        self._has_begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return what the read completed. Raises UpstreamServiceError: an event is too large."""
        if self._skip_line_feed or b"\r" in data:
            data = self._with_line_feeds(data)
        if b"\n\n" not in self._tail + data:
            self._keep(data)
            return []
        if self._parts:
            data = b"".join((*self._parts, data))
        if not self._has_begun:
            self._has_begun = True
            data = data.removeprefix(BYTE_ORDER_MARK)
        *blocks, rest = data.split(b"\n\n")
        # No check of its size here, which would lose the events before it.
        self._parts, self._size, self._tail = [rest] * bool(rest), len(rest), rest[-1:]
        return [payload for block in blocks if (payload := _data(block)) is not None]

    def _keep(self, data: bytes) -> None:
        if not data:
            return
        self._parts.append(data)
        self._size += len(data)
        self._tail = data[-1:]
        if self._size > MAX_EVENT_BYTES:
            raise UpstreamServiceError("an event of the stream is too large")

    def _with_line_feeds(self, data: bytes) -> bytes:
        if self._skip_line_feed and data.startswith(b"\n"):
            data = data[1:]
        self._skip_line_feed = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _data(block: bytes) -> bytes | None:
    """Return the data of an event, None if it is empty; `[DONE]` without spaces around it."""
    if block.startswith(b"data: ") and b"\n" not in block:
        data = block[6:]
        return data if data.startswith(b"{") else _trimmed(data)
    fields = [_field(line) for line in block.split(b"\n")]
    data = b"\n".join(value for name, value in fields if name == b"data")
    if (b"event", b"error") in fields and data.strip() and b'"error"' not in data:
        return b'{"error":' + data + b"}"
    return _trimmed(data)


def _trimmed(data: bytes) -> bytes | None:
    trimmed = data.strip()
    return DONE if trimmed == DONE else data if trimmed else None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")
