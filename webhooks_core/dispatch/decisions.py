"""What the result of an attempt means for its delivery. Pure: no clock, no database.

Also what a receiver asks for beside the repetition of its own request. That header is the one of
Standard Webhooks' proposal "Delivery control" (pull request 291 of
standard-webhooks/standard-webhooks, 2026-07-14).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from webhooks_core.network.connection import DELIVERY_CONTROL
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import AttemptResult
from webhooks_core.profiles import WebhookProfile

DISABLE, ABORT = "disable", "abort-message"
GONE, TOO_LARGE = 410, 413
BY_STATUS = {GONE: DISABLE, TOO_LARGE: ABORT}
EFFECTS = {
    DISABLE: "which switches the endpoint off",
    ABORT: "which forbids a repetition",
}


class Word(NamedTuple):
    """`disables`: the endpoint gets nothing more; otherwise this delivery alone is not repeated.

    `text` is the response with what follows from it, for people.
    """

    disables: bool
    text: str


def word_of(result: AttemptResult) -> Word | None:
    """Return what the receiver asks for; None if it asks for nothing."""
    if result.status_code is None:
        return None
    answer = f"HTTP {result.status_code}"
    wish = BY_STATUS.get(result.status_code, "")
    if in_header := _in_headers(result):
        answer = f"{answer} with {DELIVERY_CONTROL.decode()}: {in_header}"
        wish = DISABLE if DISABLE in {wish, in_header} else in_header
    if not wish or (wish == ABORT and result.outcome == Outcome.OK):
        return None
    return Word(wish == DISABLE, f"{answer}, {EFFECTS[wish]}")


def _in_headers(result: AttemptResult) -> str:
    values = {
        value.strip().lower()
        for name, value in result.response_headers
        if name.lower() == DELIVERY_CONTROL
    }
    wishes = (wish for wish in (DISABLE, ABORT) if wish.encode() in values)
    return next(wishes, "")


# After so many interruptions a delivery is a suspect: it is sent alone.
SUSPECT_AFTER = 2
# A delivery that crashes its worker process must not do so without end.
MAX_LONE_INTERRUPTIONS = 5
LONGEST_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """Delivered, to be retried after `pause_s`, or (neither) failed for good.

    With `disables` its endpoint is switched off. Then `error` says why, also of a delivered one.
    """

    is_delivered: bool = False
    pause_s: float | None = None
    error: str = ""
    disables: bool = False

    @property
    def is_final_failure(self) -> bool:
        return not self.is_delivered and self.pause_s is None


def decide(
    profile: WebhookProfile,
    *,
    tried: int,
    result: AttemptResult,
    word: Word | None = None,
) -> Decision:
    """Return what a result means; `tried` counts the attempts with a known result.

    `word` is what the receiver asks for, if its profile obeys that.
    """
    if word:
        is_delivered = result.outcome == Outcome.OK
        return Decision(is_delivered, error=word.text, disables=word.disables)
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
