"""The addresses of webhook subscriptions and of the ingest route."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from gateway.viewsets import IngestView, SubscriptionViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register(
    "v1/webhooks/subscriptions", SubscriptionViewSet, basename="gateway-subscription"
)

urlpatterns = [*router.urls, path("v1/ingest", IngestView.as_view())]
