"""Recording's addresses: /v1 and /mcp. The gateway's go before them: `{endpoint_id}` matches any."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from recording.viewsets import EventViewSet, MCPView, SubscriptionViewSet

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("v1/webhooks", SubscriptionViewSet, basename="recording-subscription")
router.register("v1/webhook-events", EventViewSet, basename="recording-event")

urlpatterns = [*router.urls, path("mcp", MCPView.as_view())]
