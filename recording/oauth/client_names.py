"""Names that an application may show on the consent page. A pure function."""

from __future__ import annotations

import re
import unicodedata

MAX_LENGTH = 100

# Letters, marks and symbols without a glyph: a name of them looks empty.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0]"
)
# In a row: more than any living script needs, too few to leave their line.
MAX_MARKS = 4
# Persian and Indian scripts need joiners between letters, and emoji sequences between emoji.
JOINERS = {"\u200c": "n", "\u200d": "j"}
# Parts of emoji that are not of the category So.
EMOJI = frozenset("\u2194\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
# A joiner between what `_kind` returns; in an emoji a mark may stand before it.
JOINER = re.compile("(?<=[LM])[jn](?=[LM])|(?<=E)j(?=E)|(?<=EM)j(?=E)")


def fault(name: str) -> str:
    """Return what is wrong with a name, as the end of a sentence; "" if nothing is."""
    kinds = JOINER.sub("", "".join(map(_kind, name)))
    if len(name) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    # Control and format characters can reverse the text around the name.
    if {"C", *JOINERS.values()} & {*kinds}:
        return "holds control characters"
    if INVISIBLE.search(name):
        return "holds characters that cannot be seen"
    if kinds.startswith("M") or "M" * (MAX_MARKS + 1) in kinds:
        return "holds combining marks without a letter of their own"
    return ""


def _kind(character: str) -> str:
    """Return the first letter of a character's category, E for emoji, or that of a joiner."""
    category = unicodedata.category(character)
    is_emoji = category == "So" or character in EMOJI
    return JOINERS.get(character) or ("E" if is_emoji else category[0])
