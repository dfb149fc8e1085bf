"""What an entry changes in its requests: fields that are left out, and fields that are added. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.request import ModelRequest
from gateway.chat.upstreams.servers import OPENAI, SERVERS
from gateway.configuration.shapes import ModelEntry

Body = Mapping[str, Any]


def adapted(request: ModelRequest, entry: ModelEntry) -> ModelRequest:
    """Return the request that an upstream of OpenAI's shape gets."""
    server = SERVERS[entry.server]
    if server is OPENAI and not (entry.drop_params or entry.extra_body):
        return request
    left_out = server.lacks if entry.drop_params is True else named(entry)
    body = without(request.body, left_out)
    if not server.takes_stream_options:
        body = without(body, ("stream_options",))
    if server.renamed:
        body = _renamed(body, server.renamed)
    return replace(request, body={**body, **entry.extra_body})


def _renamed(body: Body, names: Mapping[str, str]) -> Body:
    """Return the fields under the server's names; a field that has both names keeps its own."""
    return {
        names.get(name, name): value
        for name, value in body.items()
        if names.get(name) not in body
    }


def translated(
    request: ModelRequest, entry: ModelEntry, translate: Callable[[Body], Body]
) -> Body:
    """Return the body that an upstream of another shape gets.

    Raises as `translate` does, but with `drop_params: true` it leaves out the fields of which
    this says that they can be left out.
    """
    body = without(request.body, named(entry))
    while True:
        try:
            return {**translate(body), **entry.extra_body}
        except UnsupportedRequestError as error:
            # Each round has fewer fields, and all unknown ones go in one.
            if entry.drop_params is not True or not error.fields & body.keys():
                raise
            body = without(body, error.fields)


def named(entry: ModelEntry) -> Collection[str]:
    """Return the fields that an entry leaves out of every request."""
    return () if isinstance(entry.drop_params, bool) else entry.drop_params


def without(body: Body, names: Collection[str]) -> Body:
    if not names:
        return body
    return {name: value for name, value in body.items() if name not in names}
