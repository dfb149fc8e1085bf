"""Text of the catalogue: stored as received, compared without letter case."""

from __future__ import annotations

from catalog.errors import BadUserInputError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
NUL = "\0"  # PostgreSQL cannot store it


def folded(text: str) -> str:
    """Return the form in which texts are compared when letter case is ignored."""
    return text.casefold()


def check_name(text: str, *, field: str) -> None:
    """Raise BadUserInputError for a blank or unacceptable name."""
    if not text.strip():
        raise BadUserInputError(f"{field} must not be blank.", field=field)
    check_text(text, field=field, length=NAME_LENGTH)


def check_text(text: str, *, field: str, length: int = DESCRIPTION_LENGTH) -> None:
    """Raise BadUserInputError for a text with NUL or with too many characters."""
    if NUL in text:
        raise BadUserInputError(
            f"{field} must not hold the NUL character.", field=field
        )
    if len(text) > length:
        raise BadUserInputError(
            f"{field} must have at most {length:,} characters.", field=field
        )
