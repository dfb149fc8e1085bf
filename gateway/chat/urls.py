"""Chat's addresses, for servers that call Django."""

from __future__ import annotations

from django.urls import path

from gateway.chat.service import MODEL_PREFIXES, MODELS, ROUTES
from gateway.chat.views import ChatView, UsageView

_model = ChatView.as_view(route=MODELS)

urlpatterns = [
    *(
        path(address.lstrip("/"), ChatView.as_view(route=route))
        for address, route in ROUTES.items()
    ),
    *(
        path(f"{prefix.lstrip('/')}{name}", _model)
        for prefix in MODEL_PREFIXES
        for name in ("", "<path:model>")
    ),
    path("v1/usage", UsageView.as_view()),
]
