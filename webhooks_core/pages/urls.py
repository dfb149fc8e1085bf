"""The addresses of the pages, below the prefix that a product chooses."""

from __future__ import annotations

from django.urls import URLPattern, path

from webhooks_core.pages import deliveries, endpoints
from webhooks_core.pages.base import Door, OwnerView

ENDPOINT, DELIVERY = "/endpoints/<str:endpoint_id>", "/deliveries/<str:delivery_id>"
VIEWS: dict[str, tuple[str, type[OwnerView]]] = {
    "start": ("", endpoints.Start),
    "add": ("/add", endpoints.Add),
    "endpoint": (ENDPOINT, endpoints.EndpointView),
    "test": (f"{ENDPOINT}/test", endpoints.SendTest),
    "enable": (f"{ENDPOINT}/enable", endpoints.Enable),
    "resend-many": (f"{ENDPOINT}/resend", endpoints.ResendMany),
    "delete": (f"{ENDPOINT}/delete", endpoints.Delete),
    "secret": (f"{ENDPOINT}/secret", endpoints.Secret),
    "deliveries": ("/deliveries", deliveries.Deliveries),
    "delivery": (DELIVERY, deliveries.DeliveryView),
    "body": (f"{DELIVERY}/body", deliveries.BodyView),
    "resend": (f"{DELIVERY}/resend", deliveries.Resend),
}


def urls(door: Door) -> tuple[list[URLPattern], str]:
    """Return what include() takes, with a namespace of the product's own."""
    patterns = [
        path(route, door.serve(view.as_view(door=door)), name=name)
        for name, (route, view) in VIEWS.items()
    ]
    return patterns, "webhooks"
