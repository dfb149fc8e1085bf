"""The header `Retry-After` of responses: seconds, or a date (RFC 9110 section 10.2.3)."""

from __future__ import annotations

import math
import time
from datetime import UTC
from email.utils import format_datetime, parsedate_to_datetime

MAX_DIGITS = 8  # of what is passed on: three years


def retry_after(value: str) -> tuple[float, str]:
    """Return a `Retry-After` in seconds from now, and as text for others.

    An invalid one is 0 and empty. One of more than MAX_DIGITS digits has no text.
    """
    if value.isascii() and value.isdigit():
        return float(value), value if len(value) <= MAX_DIGITS else ""
    try:
        at = parsedate_to_datetime(value)
        # The old forms of a date do not name their zone.
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return 0.0, ""
    return max(0.0, at.timestamp() - time.time()), format_datetime(at, usegmt=True)


def whole_seconds(value: str) -> str:
    """Return a `Retry-After` in whole seconds, for clients that read no date; "" if invalid."""
    seconds, text = retry_after(value)
    return str(math.ceil(seconds)) if text else ""
