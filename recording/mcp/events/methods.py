"""The methods of MCP Events: each translates parameters into a use case, and its result back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recording.mcp import calls
from recording.mcp.events import catalog, polling, requests
from recording.mcp.events.conf import option
from recording.mcp.events.errors import EventsError
from recording.webhooks import EVENTS_PROFILE
from webhooks_core import profiles

Params = Mapping[str, Any]
Methods = dict[str, Callable[[Params], dict[str, Any]]]

EXTENSION = "io.modelcontextprotocol/events"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
# For the extension, and for assistants that read the draft before it.
CAPABILITIES = {"events": {}, "extensions": {EXTENSION: {"listChanged": False}}}


def modes() -> list[str]:
    """Return how events are delivered: without OAuth there are no applications to send to."""
    has_clients = profiles.find(EVENTS_PROFILE) is not None
    offered = {
        "webhook": has_clients and option("MCP_EVENTS_SUBSCRIPTIONS"),
        "poll": True,
        "push": has_clients and option("MCP_EVENTS_STREAMS"),
    }
    return [mode for mode, is_offered in offered.items() if is_offered]


def list_events(params: Params) -> dict[str, Any]:
    requests.read(requests.ListParams, params)
    return {"resultType": "complete", "events": catalog.descriptors(modes())}


def poll(params: Params) -> dict[str, Any]:
    request = requests.read(requests.PollParams, params)
    return polling.poll(
        request.subject(calls.account().pk),
        request.cursor,
        max_age_ms=request.max_age_ms,
        max_events=request.max_events,
    )


def served() -> Methods:
    """Return the methods by name; those for applications only where there are applications."""
    served: Methods = {"events/list": list_events, "events/poll": poll}
    if profiles.find(EVENTS_PROFILE) is None:
        return served
    # Here: it needs the tables of OAuth.
    from recording.mcp.events import webhook_methods

    return served | {
        "events/subscribe": webhook_methods.subscribe,
        "events/unsubscribe": webhook_methods.unsubscribe,
        "events/stream": webhook_methods.stream,
    }


def error_of(error: EventsError, params: Params) -> dict[str, Any]:
    """Return the error object: with the extension's numbers for clients that declare it.

    Assistants do not declare it, and read the numbers of the draft.
    """
    declared: Any = params
    for key in ("_meta", CLIENT_CAPABILITIES, "extensions"):
        declared = declared.get(key) if isinstance(declared, Mapping) else None
    return error.as_dict(is_draft=not declared or EXTENSION not in declared)
