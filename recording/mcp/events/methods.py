"""The methods of MCP Events: each translates parameters into a use case, and its result back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recording.mcp import calls
from recording.mcp.events import catalog, polling, requests
from recording.mcp.events.errors import EventsError

Params = Mapping[str, Any]

EXTENSION = "io.modelcontextprotocol/events"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
# For the extension, and for assistants that read the draft before it.
CAPABILITIES = {"events": {}, "extensions": {EXTENSION: {"listChanged": False}}}
MODES = ["poll"]


def list_events(params: Params) -> dict[str, Any]:
    requests.read(requests.ListParams, params)
    return {"resultType": "complete", "events": catalog.descriptors(MODES)}


def poll(params: Params) -> dict[str, Any]:
    request = requests.read(requests.PollParams, params)
    return polling.poll(
        request.subject(calls.account().pk),
        request.cursor,
        max_age_ms=request.max_age_ms,
        max_events=request.max_events,
    )


METHODS: dict[str, Callable[[Params], dict[str, Any]]] = {
    "events/list": list_events,
    "events/poll": poll,
}


def error_of(error: EventsError, params: Params) -> dict[str, Any]:
    """Return the error object: with the extension's numbers for clients that declare it.

    Assistants do not declare it, and read the numbers of the draft.
    """
    declared: Any = params
    for key in ("_meta", CLIENT_CAPABILITIES, "extensions"):
        declared = declared.get(key) if isinstance(declared, Mapping) else None
    return error.as_dict(is_draft=not declared or EXTENSION not in declared)
