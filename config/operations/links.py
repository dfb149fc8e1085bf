"""What there is to see, and where. An address that this version's map lacks is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import Resolver404, resolve


@dataclass(frozen=True, slots=True)
class Link:
    """An address; `opens` tells whether a browser gets a page there."""

    name: str
    path: str
    told: str
    opens: bool = True
    main: bool = True


PLACES = (
    Link("Home", "/", "this page"),
    Link("Catalogue (GraphQL)", "/graphql", "books, authors and categories"),
    Link(
        "Recording webhooks",
        "/v1/webhooks",
        "subscribe to recordings whose summary is ready",
        opens=False,
    ),
    Link(
        "Gateway webhooks",
        "/v1/webhooks/subscriptions",
        "subscribe to what happens to a tenant",
        opens=False,
    ),
    Link(
        "Chat completions",
        "/v2/chat/completions",
        "one address for every language model",
        opens=False,
    ),
    Link("Ingest", "/v1/ingest", "send text in", opens=False, main=False),
    Link("API reference", "/docs", "every address, field and error, to try out"),
    Link("OpenAPI document", "/openapi.json", "the same for programs", main=False),
    Link(
        "OAuth metadata",
        "/.well-known/oauth-authorization-server",
        "where applications connect",
        main=False,
    ),
    Link(
        "Connected apps", "/accounts/clients", "what you let in, to end it", main=False
    ),
    Link("Own tokens", "/accounts/tokens", "make and revoke them", main=False),
    Link("Administration", "/admin/", "endpoints, deliveries, accounts"),
    Link("Health", "/healthz", "does this process answer", main=False),
    Link("Readiness", "/readyz", "can it work, and does anybody deliver", main=False),
    Link("Metrics", "/metrics", "for Prometheus", main=False),
)


def existing() -> Iterator[Link]:
    """Give the places that the map of this version has."""
    return (place for place in PLACES if _exists(place.path))


def _exists(path: str) -> bool:
    """Tell whether the map has this very address, not only a pattern that fits it."""
    try:
        return resolve(path).route.strip("^$") == path.removeprefix("/")
    except Resolver404:
        return False
