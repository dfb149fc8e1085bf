"""The addresses of the pages, below the prefix that a product chooses."""

from __future__ import annotations

from collections.abc import Mapping

from django.urls import URLPattern, path

from webhooks_core.pages import (
    deliveries,
    endpoints,
    event_types,
    headers,
    history,
    replays,
    searches,
    secrets,
    why,
)
from webhooks_core.pages.base import OwnerView
from webhooks_core.pages.owners import Door


def urls(
    door: Door, more: Mapping[str, tuple[str, type[OwnerView]]] | None = None
) -> tuple[list[URLPattern], str]:
    """Return what include() takes, with a namespace of the product's own.

    `more` are pages that a product adds: by name, the route and the view.
    """
    views: dict[str, tuple[str, type[OwnerView]]] = {
        "start": ("", endpoints.Start),
        "deliveries": ("/deliveries", searches.Deliveries),
        "changes": ("/changes", history.Changes),
        "why": ("/why", why.WhyNot),
        "event-types": ("/event-types", event_types.EventTypes),
        "endpoint": ("/endpoints/<str:endpoint_id>", endpoints.EndpointView),
        "test": ("/endpoints/<str:endpoint_id>/test", endpoints.SendTest),
        "enable": ("/endpoints/<str:endpoint_id>/enable", endpoints.Enable),
        "delete": ("/endpoints/<str:endpoint_id>/delete", endpoints.Delete),
        "test-filter": (
            "/endpoints/<str:endpoint_id>/filter",
            endpoints.FilterTest,
        ),
        "headers": ("/endpoints/<str:endpoint_id>/headers", headers.Headers),
        "secret": ("/endpoints/<str:endpoint_id>/secret", secrets.Secret),
        "replay": ("/endpoints/<str:endpoint_id>/replay", replays.Replay),
        "replay-job": (
            "/endpoints/<str:endpoint_id>/replays/<str:replay_id>",
            replays.ReplayPage,
        ),
        "replay-cancel": (
            "/endpoints/<str:endpoint_id>/replays/<str:replay_id>/cancel",
            replays.CancelReplay,
        ),
        "delivery": ("/deliveries/<str:delivery_id>", deliveries.DeliveryView),
        "body": ("/deliveries/<str:delivery_id>/body", deliveries.BodyView),
        "resend": ("/deliveries/<str:delivery_id>/resend", deliveries.Resend),
        "retry-now": ("/deliveries/<str:delivery_id>/retry-now", deliveries.RetryNow),
        "cancel": ("/deliveries/<str:delivery_id>/cancel", deliveries.Cancel),
        **(more or {}),
    }
    patterns = [
        path(route, door.serve(view.as_view(door=door)), name=name)
        for name, (route, view) in views.items()
    ]
    return patterns, "webhooks"
