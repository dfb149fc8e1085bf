"""The kinds of upstreams. To add one, add its file beside this one, and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    import aiohttp

    from gateway.chat.upstreams.base import Upstream
    from gateway.configuration.shapes import Upstream as Kind

# The class of each kind, which takes the HTTP client.
KINDS: Mapping[Kind, str] = {
    "openai": "gateway.chat.upstreams.openai.OpenAI",
    "anthropic": "gateway.chat.upstreams.anthropic.Anthropic",
    "echo": "gateway.chat.upstreams.echo.Echo",
}


def connect(client: aiohttp.ClientSession) -> dict[str, Upstream]:
    """Return an upstream of each kind, which calls through this client."""
    return {name: import_string(path)(client) for name, path in KINDS.items()}
