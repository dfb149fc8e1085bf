"""When to try again: pure functions of the number of attempts."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The pauses between attempts, in seconds; after the last one a delivery fails.

    `jitter` is the largest fraction by which a pause is lengthened, never shortened.
    `retry_after_cap` is the longest pause, in seconds, that a receiver may ask for with
    `Retry-After`; None ignores the header.
    """

    delays: tuple[float, ...]
    jitter: float = 0.0
    retry_after_cap: float | None = None

    @classmethod
    def exponential(cls, *, base: float, cap: float, max_attempts: int) -> RetryPolicy:
        """Return a policy of doubling pauses, each at most `cap` seconds."""
        # Past 2**64 every pause is the cap: the exponent is bounded, the list is not.
        delays = (min(cap, base * 2.0 ** min(n, 64)) for n in range(max_attempts - 1))
        return cls(delays=tuple(delays), retry_after_cap=cap)

    @property
    def max_attempts(self) -> int:
        return len(self.delays) + 1

    def delay_after(
        self, attempts: int, *, retry_after: float | None = None
    ) -> float | None:
        """Return the pause in seconds after this many attempts; None if the delivery fails.

        A receiver's `retry_after` is honoured between the pause and twice the pause.
        """
        if attempts > len(self.delays):
            return None
        delay = self.delays[attempts - 1]
        if retry_after is not None and self.retry_after_cap is not None:
            delay = max(delay, min(retry_after, 2 * delay, self.retry_after_cap))
        return delay * (1 + random.uniform(0, self.jitter))  # noqa: S311 - spreads load, guards nothing
