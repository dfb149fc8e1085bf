"""The bodies that servers get: as they were sent but for the model's name, or changed by the entry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.chat.apis.openai import chunks
from gateway.chat.errors import InvalidValueError
from gateway.chat.request import dump
from gateway.chat.upstreams.anthropic.turns import PLACE
from gateway.chat.upstreams.base import Call
from gateway.chat.upstreams.servers import OPENAI, SERVERS, Server

Body = Mapping[str, Any]
LIMIT, NEW_LIMIT = "max_tokens", "max_completion_tokens"
OPENAI_HOSTS = ("api.openai.com", ".openai.azure.com")
ASKED = b',"stream_options":{"include_usage":true}}'


def own_body(call: Call, changed: Body | None, *, asks_usage: bool) -> bytes:
    """Return the body for a server that speaks the request's API.

    `changed` is what takes the place of the body that was sent, if anything does. Raises
    InvalidValueError for a body that is nested too deeply to be written again.
    """
    request, model = call.context.request, call.target.model
    server = SERVERS[call.entry.server]
    asks_usage = asks_usage and server.takes_stream_options
    body = request.body if changed is None else changed
    adapted = _adapted(body, call, server)
    if adapted is not request.body or not request.raw:
        return written(adapted, model, asks_usage=asks_usage)
    if asks_usage and "stream_options" in body:
        return written(body, model, asks_usage=True)
    try:
        raw = chunks.with_model(request.raw, body, model)
    except ValueError as error:
        raise InvalidValueError("The body is nested too deeply.") from error
    return raw.rstrip()[:-1] + ASKED if asks_usage else raw


def translated_body(call: Call, chat: dict[str, Any], *, asks_usage: bool) -> bytes:
    """Return the body for a server of OpenAI's shape that does not speak the request's API."""
    server, supports = SERVERS[call.entry.server], call.entry.supports
    for message in chat["messages"]:
        for block in message.get("thinking_blocks", ()):
            for name in PLACE:  # which other servers do not know
                block.pop(name, None)
    asks_usage = asks_usage and server.takes_stream_options
    if supports is not None and "reasoning" not in supports:
        chat.pop("reasoning_effort", None)
    host = urlsplit(call.target.base_url).hostname or OPENAI_HOSTS[0]
    if LIMIT in chat and (server.is_openai or host.endswith(OPENAI_HOSTS)):
        chat[NEW_LIMIT] = chat.pop(LIMIT)
    adapted = _adapted(chat, call, server)
    return written(adapted, call.target.model, asks_usage=asks_usage)


def _adapted(body: Body, call: Call, server: Server) -> Body:
    """Return a body without the fields that the entry leaves out, and with those that it adds."""
    dropped, added = call.entry.drop_params, call.entry.extra_body
    if not (dropped or added or server is not OPENAI):
        return body
    names = server.renamed
    kept = {
        names.get(name, name): value
        for name, value in body.items()
        if name not in dropped
        and names.get(name) not in body
        and (server.takes_stream_options or name != "stream_options")
    }
    return kept | added


def written(body: Body, model: str, *, asks_usage: bool) -> bytes:
    """Return a body as JSON with the upstream's own name of the model."""
    body = {**body, "model": model}
    if asks_usage:
        options = body.get("stream_options")
        if options is None or isinstance(options, dict):
            body["stream_options"] = {**(options or {}), "include_usage": True}
    return dump(body)
