"""The whole address map on one screen."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from catalog.http import graphql
from recording import views as recording

handler400 = "config.errors.bad_request"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"

WEBHOOKS = "v1/webhooks"

urlpatterns = [
    path("graphql", graphql),
    path(WEBHOOKS, recording.SubscriptionsView.as_view()),
    path(f"{WEBHOOKS}/<str:endpoint_id>", recording.SubscriptionView.as_view()),
    path(f"{WEBHOOKS}/<str:endpoint_id>/test", recording.PingView.as_view()),
    path(
        f"{WEBHOOKS}/<str:endpoint_id>/deliveries", recording.DeliveriesView.as_view()
    ),
    path("v1/webhook-events/samples", recording.SamplesView.as_view()),
    path("admin/", admin.site.urls),
]
