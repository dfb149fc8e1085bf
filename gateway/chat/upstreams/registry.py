"""The kinds of upstreams. To add one: its file beside this one, and its line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import aiohttp

from gateway.chat.upstreams.anthropic import Anthropic
from gateway.chat.upstreams.base import Upstream
from gateway.chat.upstreams.echo import Echo
from gateway.chat.upstreams.openai import OpenAI

KINDS: Mapping[str, Callable[[aiohttp.ClientSession], Upstream]] = {
    "openai": OpenAI,
    "anthropic": Anthropic,
    "echo": lambda _: Echo(),
}


def connect(client: aiohttp.ClientSession) -> dict[str, Upstream]:
    """Return an upstream of each kind that calls through this client."""
    return {kind: make(client) for kind, make in KINDS.items()}
