"""The time that one search may take: other requests of the process wait meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from recording.library.search.errors import SearchTimeoutError

_until: ContextVar[float] = ContextVar("until", default=float("inf"))


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give the searches inside this block some seconds together."""
    token = _until.set(min(_until.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _until.reset(token)


def check() -> None:
    """Raise SearchTimeoutError if the time of the running search is over."""
    if monotonic() > _until.get():
        raise SearchTimeoutError(
            "query takes too long: use fewer or rarer words, or a shorter time."
        )
