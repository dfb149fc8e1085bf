"""Full-text search over the recordings of one account."""

from __future__ import annotations

from recording.library.search.hits import SearchHit
from recording.library.search.limits import SearchQueryError
from recording.library.search.pages import SearchPage, search

__all__ = ["SearchHit", "SearchPage", "SearchQueryError", "search"]
