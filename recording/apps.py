"""OAuth, personal tokens and signed webhooks of recording events."""

from __future__ import annotations

from django.apps import AppConfig


class RecordingConfig(AppConfig):
    name = "recording"
