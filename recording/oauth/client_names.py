"""What an application may call itself, since a stranger reads it on a page. Pure functions."""

from __future__ import annotations

import re
import unicodedata

MAX_LENGTH = 100

# Letters, marks and symbols that show nothing: a name of them looks like none.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0]"
)
# In a row: more than any living script needs, and few enough to stay on their line.
MAX_MARKS = 4


def tidied(name: str) -> str:
    """Return a name on one line: every kind of white space becomes one space."""
    return " ".join(name.split())


def fault(name: str) -> str:
    """Return what is wrong with a name; nothing when it may stand on the consent page."""
    categories = "".join(unicodedata.category(each)[0] for each in name)
    if len(name) > MAX_LENGTH:
        return f"is longer than {MAX_LENGTH} characters"
    # Control and format characters can turn the text around it the other way.
    if "C" in categories:
        return "holds control characters"
    if INVISIBLE.search(name):
        return "holds characters that cannot be seen"
    if categories.startswith("M") or "M" * (MAX_MARKS + 1) in categories:
        return "holds combining marks without a letter of their own"
    return ""
