"""What happened to a delivery, and what to do, in words. No query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import ngettext

from webhooks_core import profiles
from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.errors import Outcome
from webhooks_core.owners.state import Health, in_words


def times(count: int) -> str:
    words = {1: "once", 2: "twice", 3: "three times", 4: "four times"}
    return words.get(count, f"{count} times")


def result(attempt: Attempt) -> str:
    """Return `HTTP 500`, `Timeout` or another short result."""
    if attempt.status_code is not None:
        return f"HTTP {attempt.status_code}"
    return attempt.get_outcome_display()


def sentence(attempt: Attempt, *, timeout_s: float) -> str:
    """Return what an attempt met, as a clause: `your server answered 500`."""
    if attempt.status_code is not None:
        return f"your server answered {attempt.status_code}"
    clauses: dict[str, str] = {
        Outcome.TIMEOUT: f"your server did not answer within {timeout_s:g} s",
        Outcome.UNSIGNED: "the event could not be signed",
        Outcome.INTERRUPTED: "our process ended during the attempt",
    }
    return clauses.get(attempt.outcome) or attempt.error or "the attempt failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a delivery: its headline and, where it has one, a second sentence."""

    tone: str
    headline: str
    next_step: str = ""


def verdict(
    delivery: Delivery,
    attempts: Sequence[Attempt],
    *,
    later: Sequence[Delivery],
    timeout_s: float,
    waiting: str,
) -> Verdict:
    """Return the state of a delivery; `waiting` says why a pending one is not sent yet.

    `later` are resends of the event to the same endpoint.
    """
    if delivery.status == Delivery.Status.DELIVERED:
        return Verdict("success", _delivered(attempts))
    failures = _failures(attempts, timeout_s)
    if delivery.status == Delivery.Status.PENDING:
        headline = f"Not delivered yet: {failures}" if failures else "Not sent yet"
        return Verdict("pending", f"{headline}.", waiting)
    headline = f"Not delivered: {_end(delivery, failures)}."
    arrived = any(each.status == Delivery.Status.DELIVERED for each in later)
    if arrived:
        return Verdict("success", headline, "It was resent, and arrived then.")
    return Verdict("error", headline, "It is not sent again automatically.")


def _delivered(attempts: Sequence[Attempt]) -> str:
    if not attempts:
        return "Delivered."
    last = attempts[-1]
    number = "" if len(attempts) == 1 else f" at attempt {len(attempts)}"
    pause = in_words(timedelta(milliseconds=last.duration_ms))
    return f"Delivered{number}: your server answered {last.status_code} in {pause}."


def _failures(attempts: Sequence[Attempt], timeout_s: float) -> str:
    if not attempts:
        return ""
    clauses = [sentence(attempt, timeout_s=timeout_s) for attempt in attempts]
    if len(clauses) == 1:
        return clauses[0]
    span = in_words(attempts[-1].ended_at - attempts[0].started_at)
    if len(set(clauses)) == 1:
        return f"{clauses[0]}, {times(len(clauses))} in {span}"
    return f"{len(clauses)} attempts in {span} failed, and the last time {clauses[-1]}"


def _end(delivery: Delivery, failures: str) -> str:
    """Return why a delivery failed: what its attempts met, or what ended it before."""
    error = delivery.last_error
    if error.startswith(ENDED_BY_PEOPLE):
        return f"{error}; before, {failures}" if failures else error
    return failures or error or "no attempt was made"


ENDED_BY_PEOPLE = ("endpoint deleted", "endpoint inactive")


def summary(delivery: Delivery) -> str:
    """Return the result of a delivery in a few words."""
    if delivery.status == Delivery.Status.DELIVERED:
        is_first = delivery.attempts == 1
        return "" if is_first else f"at attempt {delivery.attempts}"
    if not delivery.last_error:
        return "not tried yet"
    attempts = ngettext("{} attempt", "{} attempts", delivery.attempts)
    return f"{delivery.last_error[:120]}, {attempts.format(delivery.attempts)}"


TONES: dict[int, str] = {
    Delivery.Status.PENDING: "pending",
    Delivery.Status.DELIVERED: "success",
    Delivery.Status.FAILED: "error",
}


def state(delivery: Delivery) -> tuple[str, str]:
    """Return the tone and the word of a delivery's badge."""
    return TONES[delivery.status], delivery.get_status_display()


def waits(delivery: Delivery, now: datetime) -> str:
    """Say why a delivery, read with its endpoint, is not sent yet; "" for one that has ended."""
    if delivery.status != Delivery.Status.PENDING:
        return ""
    if delivery.claimed_by is not None:
        return "It is being sent."
    if not delivery.endpoint.is_receiving:
        return f"Waits: the endpoint is {Health.of(delivery.endpoint).lower()}."
    if not profiles.get(delivery.endpoint.profile).enabled:
        return "Waits: webhooks are switched off in the configuration."
    at = delivery.next_attempt_at
    if at is not None and at > now:
        return f"Waits for {in_words(at - now)}: then it is tried again."
    return "Waits: its turn comes next."
