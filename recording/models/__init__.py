"""Recordings, event subscriptions and personal tokens."""

from __future__ import annotations

from recording.models.events import EventSubscription
from recording.models.recordings import Recording
from recording.models.tokens import PersonalToken

__all__ = [
    "EventSubscription",
    "PersonalToken",
    "Recording",
]
