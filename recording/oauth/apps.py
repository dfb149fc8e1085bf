"""OAuth 2.1 for recording: registration, consent, tokens, metadata."""

from __future__ import annotations

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    name = "recording.oauth"
    label = "recording_oauth"
    verbose_name = "OAuth"
