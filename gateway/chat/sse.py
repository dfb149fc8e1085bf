"""Server-sent events: an incremental reader of the upstreams' events, and the frame of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gateway.chat.errors import UpstreamServiceError

MAX_EVENT_BYTES = 16 * 1024 * 1024
DONE = b"[DONE]"
# Clients skip a comment (WHATWG HTML, section 9.2.6). It stands between events only.
COMMENT = b": keep-alive\n\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DATA = re.compile(rb"^data(?:: ?(.*))?$", re.MULTILINE)


def frame(payload: bytes, name: bytes = b"") -> bytes:
    """Return one event, with its name if it has one; the payload must hold no line break."""
    head = b"event: " + name + b"\n" if name else b""
    return head + b"data: " + payload + b"\n\n"


class EventReader:
    """Turns reads of any size into the `data` of whole events (WHATWG HTML, sections 9.2.5 and 6).

    An event that its stream does not complete is discarded, as the standard says.
    """

    __slots__ = ("_has_begun", "_rest", "_skip_line_feed")

    def __init__(self) -> None:
        self._rest = bytearray()
        self._skip_line_feed = False
        self._has_begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return what the read completed. Raises UpstreamServiceError: an event is too large."""
        if self._skip_line_feed or b"\r" in data:
            data = self._with_line_feeds(data)
        if b"\n\n" not in bytes(self._rest[-1:]) + data:
            self._rest += data
            if len(self._rest) > MAX_EVENT_BYTES:
                raise UpstreamServiceError("an event of the stream is too large")
            return []
        if self._rest:
            data = bytes(self._rest) + data
        has_begun, self._has_begun = self._has_begun, True
        *blocks, rest = data.split(b"\n\n")
        # No check of its size here, which would lose the events before it.
        self._rest = bytearray(rest)
        if not has_begun:
            blocks[0] = blocks[0].removeprefix(BYTE_ORDER_MARK)
        return self._of_interest(blocks)

    def _of_interest(self, blocks: Iterable[bytes]) -> list[bytes]:
        return [payload for block in blocks if (payload := data_of(block)) is not None]

    def _with_line_feeds(self, data: bytes) -> bytes:
        if self._skip_line_feed and data.startswith(b"\n"):
            data = data[1:]
        self._skip_line_feed = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class BlockReader(EventReader):
    """Returns whole events as they came, comments and names included, without their end."""

    __slots__ = ()

    def _of_interest(self, blocks: Iterable[bytes]) -> list[bytes]:
        return [block for block in blocks if block]


def data_of(block: bytes) -> bytes | None:
    """Return the data of an event, None if it is empty; `[DONE]` without spaces around it."""
    if block.startswith(b"data: ") and b"\n" not in block:
        data = block[6:]
        if data.startswith(b"{"):
            return data
    else:
        data = b"\n".join(DATA.findall(block))
    trimmed = data.strip()
    return DONE if trimmed == DONE else data if trimmed else None
