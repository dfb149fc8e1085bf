"""The memory of running requests' bodies: a budget per key, and one for the process. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from webhooks_core.web.errors import TooManyRequestsError, UnavailableError

RETRY_S = 1
# A request of this size is always admitted: large ones of others do not stop it.
SMALL_BYTES = 64 * 1024


@dataclass(slots=True)
class BodyBudget:
    """How many bytes requests may hold at once; 0 is no limit.

    A request that is alone, of its key or in all, is always admitted.
    """

    per_key: int = 0
    in_all: int = 0
    held: int = 0
    _by_key: Counter[str] = field(default_factory=Counter)

    def take(self, key: str, *, own: int, more: int) -> None:
        """Count more bytes of a request that holds `own`.

        Raises TooManyRequestsError for the budget of the key, UnavailableError for that of all.
        """
        if own + more > SMALL_BYTES:
            self._check(key, own=own, more=more)
        self.held += more
        self._by_key[key] += more

    def _check(self, key: str, *, own: int, more: int) -> None:
        if _is_over(self._by_key[key] - own, own + more, self.per_key):
            text = f"At most {self.per_key} bytes of requests at once."
            raise TooManyRequestsError(text, headers={"Retry-After": str(RETRY_S)})
        if _is_over(self.held - own, own + more, self.in_all):
            raise UnavailableError("The running requests are too large; try again.")

    def give_back(self, key: str, size: int) -> None:
        self.held -= size
        self._by_key[key] -= size
        if self._by_key[key] <= 0:
            del self._by_key[key]


def _is_over(others: int, own: int, limit: int) -> bool:
    return bool(limit and others > 0 and others + own > limit)


@dataclass(slots=True)
class BodyBytes:
    """The bytes that one request holds: of its body, and of what was read from it."""

    budget: BodyBudget
    key: str
    size: int = 0

    def add(self, size: int) -> None:
        """Hold more. Raises as BodyBudget.take() does."""
        self.budget.take(self.key, own=self.size, more=size)
        self.size += size

    def release(self) -> None:
        """Hold nothing any more."""
        self.budget.give_back(self.key, self.size)
        self.size = 0
