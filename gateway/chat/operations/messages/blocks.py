"""The blocks of a streamed message, one after another: each starts, goes on and stops. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway import json
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.operations.carried import joined
from gateway.chat.operations.messages.call_ids import CallIds
from gateway.chat.operations.messages.response import signature_of
from gateway.chat.sse import MAX_EVENT_BYTES

# A delta of each kind of block: its type, and the member with its text.
DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


@dataclass(slots=True, eq=False)
class Block:
    """One block. What comes for it before it can start is kept in `waiting`."""

    kind: str
    key: str = ""  # the upstream's id of a call
    name: str = ""  # of a call
    data: str = ""  # of thinking that is hidden
    signature: str = ""  # of thinking
    details: list[Any] = field(default_factory=list)  # of thinking, to be signed with
    extra: Any = None  # what belongs to a call
    index: int = -1  # until it starts
    is_closed: bool = False
    waiting: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    _checked: int = 0  # so many parts of them
    _is_whole: bool = False

    @property
    def has_started(self) -> bool:
        return self.index >= 0

    @property
    def is_whole(self) -> bool:
        """True if the next block may start: a call may get more arguments until it is JSON."""
        if self.kind != "tool_use":
            return True
        if len(self.arguments) > self._checked:
            self._checked = len(self.arguments)
            may_be = self.arguments[-1].rstrip().endswith("}")
            self._is_whole = may_be and json.is_json("".join(self.arguments))
        return self._is_whole


class Blocks:
    """The blocks of one message; `send` takes their events.

    Servers may send the arguments of several calls in turns. The API's clients get one block
    after another, so that those of later calls wait.
    """

    def __init__(self, ids: CallIds, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._ids, self._send = ids, send
        self._waiting: list[Block] = []
        self._waiting_size = 0
        self._started = 0
        self.open: Block | None = None

    def add_text(self, kind: str, text: str, signature: str = "") -> Block:
        """Add text or thinking to the last block if that is of its kind, else to a new one."""
        last = self._waiting[-1] if self._waiting else self.open
        if last is None or last.kind != kind:
            last = Block(kind, signature=signature)
        self.add(last, text)
        return last

    def sign(self, signature: str) -> None:
        """Note the signature of the thinking that is open, if any is."""
        if self.open is not None and self.open.kind == "thinking":
            self.open.signature = signature

    def add(self, block: Block, text: str) -> None:
        """Add text to a block. Raises UpstreamServiceError: it was whole, or more waits than may."""
        if block is self.open:
            self._send_text(block, text)
        elif block.is_closed:
            if text.strip():
                raise UpstreamServiceError("arguments of a call that is whole")
        else:
            self._wait(block, text)
            self._advance()

    def _wait(self, block: Block, text: str) -> None:
        if block not in self._waiting:
            self._waiting.append(block)
        block.waiting.append(text)
        self._waiting_size += len(text)
        if self._waiting_size > MAX_EVENT_BYTES:
            raise UpstreamServiceError("the calls of a message are too large")

    def _advance(self) -> None:
        """Start the blocks that wait, while each before them is whole."""
        while self._waiting and (self.open is None or self.open.is_whole):
            block = self._waiting[0]
            if block.kind == "tool_use" and not block.name:
                return
            self._close()
            self._start(self._waiting.pop(0))

    def close_all(self) -> None:
        """Start and stop all blocks that are left. Raises UpstreamServiceError."""
        self._close()
        for block in self._waiting:
            if block.kind == "tool_use" and not block.name:
                raise UpstreamServiceError("a call without a name")
            self._start(block)
            self._close()
        self._waiting.clear()

    def _start(self, block: Block) -> None:
        block.index, self.open = self._started, block
        self._started += 1
        event = {"type": "content_block_start", "index": block.index}
        self._send({**event, "content_block": self._empty(block)})
        waiting, block.waiting = block.waiting, []
        for text in waiting:
            self._send_text(block, text)

    def _empty(self, block: Block) -> dict[str, Any]:
        """Return a block as it is at its start."""
        match block.kind:
            case "tool_use":
                key = self._ids.new(block.key, block.extra)
                return {"type": "tool_use", "id": key, "name": block.name, "input": {}}
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}
            case "redacted_thinking":
                return {"type": "redacted_thinking", "data": block.data}
        return {"type": "text", "text": ""}

    def _send_text(self, block: Block, text: str) -> None:
        if not text:
            return
        if block.kind == "tool_use":
            block.arguments.append(text)
        kind, member = DELTAS[block.kind]
        self._send_delta(block, {"type": kind, member: text})

    def _send_delta(self, block: Block, delta: Mapping[str, Any]) -> None:
        event = {"type": "content_block_delta", "index": block.index, "delta": delta}
        self._send(event)

    def _close(self) -> None:
        block, self.open = self.open, None
        if block is None:
            return
        if block.details:
            details = joined(block.details)
            block.signature = signature_of("", details, self._ids) or block.signature
        if block.signature:
            signature = {"type": "signature_delta", "signature": block.signature}
            self._send_delta(block, signature)
        if block.kind == "tool_use" and not "".join(block.arguments).strip():
            self._send_text(block, "{}")
        block.is_closed = True
        block.arguments.clear()
        self._send({"type": "content_block_stop", "index": block.index})
