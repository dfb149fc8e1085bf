"""Chat's addresses, for servers that call Django."""

from __future__ import annotations

from django.urls import path

from gateway.chat.metering.api import UsageView
from gateway.chat.request_log.api import RequestsView, RequestView
from gateway.chat.routes import MODEL_PREFIX, MODELS, ROUTES
from gateway.chat.views import ChatView

urlpatterns = [
    *(
        path(address.lstrip("/"), ChatView.as_view(chat_route=route))
        for address, route in ROUTES.items()
    ),
    *(
        path(f"{MODEL_PREFIX.lstrip('/')}{name}", ChatView.as_view(chat_route=MODELS))
        for name in ("", "<path:model>")
    ),
    path("v1/usage", UsageView.as_view()),
    path("v1/requests", RequestsView.as_view()),
    path("v1/requests/<str:request_id>", RequestView.as_view()),
]
