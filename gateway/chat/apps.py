"""Chat completions: model endpoints, upstreams, streams, usage."""

from __future__ import annotations

from django.apps import AppConfig


class ChatConfig(AppConfig):
    name = "gateway.chat"
    label = "gateway_chat"
    verbose_name = "Gateway chat"
