"""Recordings, what a search of them reads, and the personal tokens that give access to them."""

from __future__ import annotations

from recording.models.recordings import Recording, SearchTerms
from recording.models.tokens import PersonalToken

__all__ = ["PersonalToken", "Recording", "SearchTerms"]
