"""The kinds of upstreams. To add one, add its file beside this one, and its line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.module_loading import import_string

if TYPE_CHECKING:
    import aiohttp

    from gateway.chat.upstreams.base import Upstream


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of upstream: the path of its class, which takes the HTTP client.

    The class is imported on demand: the configuration and the models need only the names.
    A built-in upstream has no base URL.
    """

    path: str
    needs_base_url: bool = True


KINDS: Mapping[str, Kind] = {
    "openai": Kind("gateway.chat.upstreams.openai.OpenAI"),
    "anthropic": Kind("gateway.chat.upstreams.anthropic.Anthropic"),
    "echo": Kind("gateway.chat.upstreams.echo.Echo", needs_base_url=False),
}


def connect(client: aiohttp.ClientSession) -> dict[str, Upstream]:
    """Return an upstream of each kind, which calls through this client."""
    return {name: import_string(kind.path)(client) for name, kind in KINDS.items()}
