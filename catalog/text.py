"""Text as the catalogue takes it: stored as it came, compared without letter case."""

from __future__ import annotations

from catalog.errors import BadUserInputError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
NUL = "\0"  # PostgreSQL cannot store it


def folded(text: str) -> str:
    """Return what two texts have in common when letter case is ignored, in every script."""
    return text.casefold()


def checked(text: str, *, field: str, length: int = NAME_LENGTH) -> str:
    """Return a required text unchanged, or raise BadUserInputError."""
    if not text.strip():
        raise BadUserInputError(f"{field} must not be blank.", field=field)
    return checked_optional(text, field=field, length=length)


def checked_optional(text: str, *, field: str, length: int = NAME_LENGTH) -> str:
    """Return a text that may be empty unchanged, or raise BadUserInputError."""
    if NUL in text:
        raise BadUserInputError(
            f"{field} must not hold the NUL character.", field=field
        )
    if len(text) > length:
        raise BadUserInputError(
            f"{field} must have at most {length:,} characters.", field=field
        )
    return text
