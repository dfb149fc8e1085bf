"""Chat's addresses, for servers that call Django."""

from __future__ import annotations

from django.urls import path

from gateway.chat.service import MODEL_PREFIX, MODELS, ROUTES
from gateway.chat.views import ChatView, UsageView

_model = ChatView.as_view(route=MODELS)

urlpatterns = [
    *(
        path(address.lstrip("/"), ChatView.as_view(route=route))
        for address, route in ROUTES.items()
    ),
    path(MODEL_PREFIX.lstrip("/"), _model),
    path(f"{MODEL_PREFIX.lstrip('/')}<path:model>", _model),
    path("v1/usage", UsageView.as_view()),
]
