"""What the end of an attempt means for its delivery. Pure: no clock, no database."""

from __future__ import annotations

from dataclasses import dataclass

from webhooks_core.network.transport import AttemptResult
from webhooks_core.outcomes import Outcome
from webhooks_core.profiles import WebhookProfile

# A delivery that keeps killing its worker must not do so for ever.
MAX_INTERRUPTIONS = 5


@dataclass(frozen=True, slots=True)
class Decision:
    """Delivered, to be tried again after `pause_s`, or (neither) failed for good."""

    delivered: bool = False
    pause_s: float | None = None
    error: str = ""

    @property
    def is_final(self) -> bool:
        return not self.delivered and self.pause_s is None


def decide(profile: WebhookProfile, *, tried: int, answer: AttemptResult) -> Decision:
    """Return what an answer means; `tried` counts the attempts that we saw the end of."""
    if answer.outcome == Outcome.OK:
        return Decision(delivered=True)
    pause = profile.retry.delay_after(tried, retry_after=answer.retry_after)
    return Decision(pause_s=pause, error=answer.error)
