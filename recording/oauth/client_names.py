"""Which names an application may show on the consent page. A pure function."""

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


def fault(name: str) -> str:
    """Return what is wrong with a name, as the end of a sentence; "" if nothing is."""
    categories = "".join(unicodedata.category(character)[0] for character in name)
    if len(name) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    # Control and format characters can reverse the text around the name.
    if "C" in categories:
        return "holds control characters"
    if INVISIBLE.search(name):
        return "holds characters that cannot be seen"
    if categories.startswith("M") or "M" * (MAX_MARKS + 1) in categories:
        return "holds combining marks without a letter of their own"
    return ""
