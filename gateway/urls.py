"""The addresses of subscriptions, keys, the ingest route, and published events."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from gateway.key_api import KeyViewSet
from gateway.viewsets import IngestView, PublishView, SubscriptionViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register(
    "v1/webhooks/subscriptions", SubscriptionViewSet, basename="gateway-subscription"
)

router.register("v1/keys", KeyViewSet, basename="gateway-key")

urlpatterns = [
    *router.urls,
    path("v1/ingest", IngestView.as_view()),
    path("v1/events", PublishView.as_view()),
]
