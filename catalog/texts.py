"""What texts and ids the catalogue takes: texts are stored as received, compared without letter case."""

from __future__ import annotations

import re

from catalog.errors import BadUserInputError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
LONGEST_FOLDED = 3 * NAME_LENGTH  # folding makes up to three characters of one
NUL = "\0"  # PostgreSQL cannot store it

ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
ABSENT = 0  # keys start at 1
LARGEST_32 = 2**31 - 1  # of authors and categories, which a GraphQL Int names
LARGEST_64 = 2**63 - 1  # of books


def primary_key(value: str | int, largest: int = LARGEST_32) -> int:
    """Return the key that an ID or Int names, or ABSENT when no row can have it."""
    if not ID.fullmatch(text := str(value)):
        return ABSENT
    return key if (key := int(text)) <= largest else ABSENT


def folded(text: str) -> str:
    """Return the form in which texts are compared when letter case is ignored."""
    return text.casefold()


def can_occur(part: str) -> bool:
    """Return True if a name can hold this text."""
    return NUL not in part and len(folded(part)) <= LONGEST_FOLDED


def check_name(text: str, *, field: str) -> None:
    """Raise BadUserInputError for a blank or unacceptable name."""
    if not text.strip():
        raise BadUserInputError(f"{field} must not be blank.", field=field)
    check_text(text, field=field, length=NAME_LENGTH)


def check_text(text: str, *, field: str, length: int = DESCRIPTION_LENGTH) -> None:
    """Raise BadUserInputError for a text with NUL or with too many characters."""
    if NUL in text:
        message = f"{field} must not hold the NUL character."
        raise BadUserInputError(message, field=field)
    if len(text) > length:
        message = f"{field} must have at most {length:,} characters."
        raise BadUserInputError(message, field=field)
