"""What the result of an attempt means for its delivery. Pure: no clock, no database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import AttemptResult
from webhooks_core.profiles import WebhookProfile

# After so many interruptions a delivery is a suspect: it is sent while no other suspect is.
SUSPECT_AFTER = 2
# A delivery that crashes its worker process must not do so without end.
MAX_LONE_INTERRUPTIONS = 5
LONGEST_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """Delivered, to be retried after `pause_s`, or (neither) failed for good."""

    is_delivered: bool = False
    pause_s: float | None = None
    error: str = ""

    @property
    def is_final_failure(self) -> bool:
        return not self.is_delivered and self.pause_s is None


def decide(profile: WebhookProfile, *, tried: int, result: AttemptResult) -> Decision:
    """Return what a result means; `tried` counts the attempts with a known result."""
    if result.outcome == Outcome.OK:
        return Decision(is_delivered=True)
    if result.status_code in profile.final_statuses:
        return Decision(error=result.error)
    pause = profile.retry.delay_after(tried, retry_after=result.retry_after)
    return Decision(pause_s=pause, error=result.error)


def pause_after_interruption(interruptions: int) -> timedelta:
    """Return the pause after so many: the first attempt is repeated at once, a suspect later."""
    if interruptions < SUSPECT_AFTER:
        return timedelta(0)
    return min(timedelta(seconds=2 ** (interruptions - 1)), LONGEST_PAUSE)
