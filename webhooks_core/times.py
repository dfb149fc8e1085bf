"""Times, as the APIs write them."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(at: datetime) -> str:
    """Return a time as `2026-11-21T03:20:00.000000Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
