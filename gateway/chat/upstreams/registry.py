"""The kinds of upstreams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gateway.chat.upstreams.echo import Echo
from gateway.chat.upstreams.server import Server
from webhooks_core.network.client import HttpClient

if TYPE_CHECKING:
    from gateway.chat.upstreams.base import Upstream


def connect(client: HttpClient) -> Mapping[str, Upstream]:
    """Return an upstream of each kind, which calls through this client."""
    server = Server(client)
    return {"openai": server, "anthropic": server, "echo": Echo()}
