"""Text of the catalogue: stored as received, compared without letter case."""

from __future__ import annotations

from catalog.errors import BadUserInputError

NAME_LENGTH = 255
DESCRIPTION_LENGTH = 10_000
NUL = "\0"  # PostgreSQL cannot store it
LAST_CODE_POINT = chr(0x10FFFF)
# The longest text that names are compared with: two names and a space, of which folding makes
# up to three characters of one.
LONGEST_FOLDED = 3 * 2 * NAME_LENGTH + 1


def folded(text: str) -> str:
    """Return the form in which texts are compared when letter case is ignored."""
    return text.casefold()


def can_occur(part: str) -> bool:
    """Return True if a name can hold this text."""
    return NUL not in part and len(folded(part)) <= LONGEST_FOLDED


def following(prefix: str) -> str:
    """Return the first text in code-point order behind all that begin with a prefix; "" if none is."""
    text = prefix.rstrip(LAST_CODE_POINT)
    if not text:
        return ""
    following = ord(text[-1]) + 1
    # Surrogates are no characters.
    return text[:-1] + chr(0xE000 if following == 0xD800 else following)


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
