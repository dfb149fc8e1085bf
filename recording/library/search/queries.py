"""What a query asks for: phrases, of which plain words are the shortest."""

from __future__ import annotations

import re

from recording.library.search import words
from recording.library.search.limits import SearchQueryError

LONGEST = 1000  # characters
MOST_PHRASES = 32

QUOTED_OR_PLAIN = re.compile('["“”„]([^"“”„]*)["“”„]?|([^\\s"“”„]+)')


def phrases(query: str) -> list[tuple[str, ...]]:
    """Return the phrases of a query, each once, as tokens. Raises SearchQueryError.

    What stands between quotation marks or between spaces is a phrase: its words follow one
    another. A quotation that is not closed ends with the query.
    """
    if len(query) > LONGEST:
        raise SearchQueryError(f"query is longer than {LONGEST} characters.")
    parts = (match[1] or match[2] or "" for match in QUOTED_OR_PLAIN.finditer(query))
    found = dict.fromkeys(tuple(words.tokens(words.folded(part))) for part in parts)
    found.pop((), None)
    if not found:
        raise SearchQueryError("query has no word to search for.")
    if len(found) > MOST_PHRASES:
        raise SearchQueryError(f"query has more than {MOST_PHRASES} words or phrases.")
    if max(map(len, found)) > words.MOST_TOKENS:
        raise SearchQueryError(
            f"query has a phrase of more than {words.MOST_TOKENS} words (in scripts without spaces, "
            "characters)."
        )
    return list(found)
