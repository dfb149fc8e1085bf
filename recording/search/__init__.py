"""Full-text search over the recordings of one account."""

from __future__ import annotations

from recording.search.errors import SearchQueryError
from recording.search.hits import SearchHit
from recording.search.pages import SearchPage, search

__all__ = ["SearchHit", "SearchPage", "SearchQueryError", "search"]
