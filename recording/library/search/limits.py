"""Why a search is refused, and the time that it may take: other requests of the process wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

DEADLINE_S = 5.0

_until: ContextVar[float] = ContextVar("until", default=float("inf"))


class SearchQueryError(ValueError):
    """A search that cannot be run; the message says why."""


class SearchTimeoutError(SearchQueryError):
    """A search that used up its time."""


@contextmanager
def deadline() -> Iterator[None]:
    """Give the searches inside this block DEADLINE_S together."""
    token = _until.set(min(_until.get(), monotonic() + DEADLINE_S))
    try:
        yield
    finally:
        _until.reset(token)


def check_time() -> None:
    """Raise SearchTimeoutError if the time of the running search is over."""
    if monotonic() > _until.get():
        raise SearchTimeoutError(
            "query takes too long: use fewer or rarer words, or a shorter time."
        )
