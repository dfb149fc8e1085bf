"""The items of a response that are not done yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gateway.chat.operations.responses.result import Item
from gateway.chat.operations.responses.tools import Tool


@dataclass(slots=True)
class OpenItem:
    """An item that is not done, with its place in the output and its text so far."""

    key: str
    place: int
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@dataclass(slots=True)
class OpenReasoning(OpenItem):
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class OpenMessage(OpenItem):
    """`kind` is that of the open part."""

    kind: str = ""
    parts: list[Item] = field(default_factory=list)
    logprobs: list[Item] = field(default_factory=list)
    annotations: list[Item] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class OpenCall(OpenItem):
    """A call; `own` is the upstream's id of it, `call_id` the client's."""

    own: str
    call_id: str
    tool: Tool
    is_done: bool = False
