"""Why a search is refused."""

from __future__ import annotations


class SearchQueryError(ValueError):
    """A search that cannot be run; the message says why."""


class SearchTimeoutError(SearchQueryError):
    """A search that used up its time."""
