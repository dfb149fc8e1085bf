"""The errors of MCP Events, with the numbers of the extension and those of its first draft."""

from __future__ import annotations

from typing import Any

# By name: the number of the extension (SEP-3415), and of the draft before it, which assistants read.
CODES = {
    "InvalidParams": (-32602, -32602),
    "NotFound": (-32023, -32011),
    "Forbidden": (-32024, -32012),
    "ResourceExhausted": (-32025, -32013),
    "Unsupported": (-32026, -32014),
    "CallbackEndpointError": (-32027, -32015),
}


class EventsError(Exception):
    """A request that is refused; `message` says what to change, `data` is for programs."""

    def __init__(self, name: str, message: str, **data: Any) -> None:
        super().__init__(f"{name}: {message}")
        self.name, self.data = name, data

    def as_dict(self, *, is_draft: bool) -> dict[str, Any]:
        """Return the error object of JSON-RPC."""
        error = {"code": CODES[self.name][is_draft], "message": str(self)}
        return error | ({"data": self.data} if self.data else {})
