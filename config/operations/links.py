"""The addresses that the home page and `manage.py up` show, as far as the URL map has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import Resolver404, resolve


@dataclass(frozen=True, slots=True)
class Link:
    """An address. `is_page`: a browser can open it; `is_main`: `manage.py up` shows it."""

    name: str
    path: str
    description: str
    is_page: bool = True
    is_main: bool = True


LINKS = (
    Link("Home", "/", "this page"),
    Link("Catalog (GraphQL)", "/graphql", "books, authors and categories"),
    Link(
        "Recording webhooks",
        "/v1/webhooks",
        "subscribe to recordings whose summary is ready",
        is_page=False,
    ),
    Link(
        "MCP server",
        "/mcp",
        "read recordings from an AI application",
        is_page=False,
    ),
    Link(
        "Gateway webhooks",
        "/v1/webhooks/subscriptions",
        "subscribe to what happens to a tenant",
        is_page=False,
    ),
    Link(
        "Chat completions",
        "/v2/chat/completions",
        "one address for every language model",
        is_page=False,
    ),
    Link("Ingest", "/v1/ingest", "send a document", is_page=False, is_main=False),
    Link("API reference", "/docs", "every operation, field and error"),
    Link("Guides", "/guides/", "how to use and operate every part"),
    Link("OpenAPI document", "/openapi.json", "the same for programs", is_main=False),
    Link(
        "OAuth metadata",
        "/.well-known/oauth-authorization-server",
        "for OAuth clients",
        is_main=False,
    ),
    Link(
        "Connected apps",
        "/accounts/clients",
        "applications with access to your account",
        is_main=False,
    ),
    Link(
        "Own tokens",
        "/accounts/tokens",
        "create and revoke personal tokens",
        is_main=False,
    ),
    Link("Administration", "/admin/", "endpoints, deliveries, accounts"),
    Link("Health", "/healthz", "whether this process responds", is_main=False),
    Link(
        "Readiness",
        "/readyz",
        "whether it can serve, and whether workers deliver",
        is_main=False,
    ),
    Link("Metrics", "/metrics", "for Prometheus", is_main=False),
)


def existing() -> Iterator[Link]:
    return (link for link in LINKS if _exists(link.path))


def _exists(path: str) -> bool:
    """Return True if the URL map has exactly this address, not only a pattern that matches it."""
    try:
        return resolve(path).route.strip("^$") == path.removeprefix("/")
    except Resolver404:
        return False
