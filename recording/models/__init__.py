"""Recordings, what a search of them reads, and personal tokens."""

from __future__ import annotations

from recording.models.events import EventSubscription
from recording.models.recordings import Recording, SearchTerms
from recording.models.tokens import PersonalToken

__all__ = [
    "EventSubscription",
    "PersonalToken",
    "Recording",
    "SearchTerms",
]
