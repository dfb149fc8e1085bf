"""The whole address map on one screen."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from gateway import views as gateway
from recording import views as recording

handler400 = "config.errors.bad_request"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"

WEBHOOKS = "v1/webhooks"
SUBSCRIPTIONS = f"{WEBHOOKS}/subscriptions"
SUBSCRIPTION = f"{SUBSCRIPTIONS}/<str:subscription_id>"

urlpatterns = [
    # Before recording's {endpoint_id}, which would match them too.
    path(SUBSCRIPTIONS, gateway.SubscriptionsView.as_view()),
    path(SUBSCRIPTION, gateway.SubscriptionView.as_view()),
    path(f"{SUBSCRIPTION}/test", gateway.TestView.as_view()),
    path(f"{SUBSCRIPTION}/deliveries", gateway.DeliveriesView.as_view()),
    path("v1/ingest", gateway.IngestView.as_view()),
    path(WEBHOOKS, recording.SubscriptionsView.as_view()),
    path(f"{WEBHOOKS}/<str:endpoint_id>", recording.SubscriptionView.as_view()),
    path(f"{WEBHOOKS}/<str:endpoint_id>/test", recording.PingView.as_view()),
    path(
        f"{WEBHOOKS}/<str:endpoint_id>/deliveries", recording.DeliveriesView.as_view()
    ),
    path("v1/webhook-events/samples", recording.SamplesView.as_view()),
    path("admin/", admin.site.urls),
]
