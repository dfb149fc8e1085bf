"""Recordings and the tokens that reach them."""

from __future__ import annotations

from recording.models.recordings import Recording
from recording.models.tokens import PersonalToken

__all__ = ["PersonalToken", "Recording"]
