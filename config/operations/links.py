"""What there is to see, and where. An address that this version's map lacks is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import Resolver404, resolve


@dataclass(frozen=True, slots=True)
class Place:
    """An address; `opens` tells whether a browser gets a page there."""

    name: str
    path: str
    told: str
    opens: bool = True
    main: bool = True


PLACES = (
    Place("Home", "/", "this page"),
    Place("Catalogue (GraphQL)", "/graphql", "books, authors and categories"),
    Place(
        "Recording webhooks",
        "/v1/webhooks",
        "subscribe to recordings whose summary is ready",
        opens=False,
    ),
    Place(
        "Gateway webhooks",
        "/v1/webhooks/subscriptions",
        "subscribe to what happens to a tenant",
        opens=False,
    ),
    Place(
        "Chat completions",
        "/v2/chat/completions",
        "one address for every language model",
        opens=False,
    ),
    Place("Ingest", "/v1/ingest", "send text in", opens=False, main=False),
    Place("API reference", "/docs", "every address, field and error, to try out"),
    Place("OpenAPI document", "/openapi.json", "the same for programs", main=False),
    Place(
        "OAuth metadata",
        "/.well-known/oauth-authorization-server",
        "where applications connect",
        main=False,
    ),
    Place(
        "Connected apps", "/accounts/clients", "what you let in, to end it", main=False
    ),
    Place("Own tokens", "/accounts/tokens", "make and revoke them", main=False),
    Place("Administration", "/admin/", "endpoints, deliveries, accounts"),
    Place("Health", "/healthz", "does this process answer", main=False),
    Place("Readiness", "/readyz", "can it work, and does anybody deliver", main=False),
    Place("Metrics", "/metrics", "for Prometheus", main=False),
)


def existing() -> Iterator[Place]:
    """Give the places that the map of this version has."""
    return (place for place in PLACES if _exists(place.path))


def _exists(path: str) -> bool:
    """Tell whether the map has this very address, not only a pattern that fits it."""
    try:
        return resolve(path).route.strip("^$") == path.removeprefix("/")
    except Resolver404:
        return False
