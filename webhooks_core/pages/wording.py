"""What happened to a delivery, and what to do, in words. Pure: no query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.outcomes import Outcome

UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def in_words(duration: timedelta) -> str:
    """Return `240 ms`, `12 s`, `5 min`, `3 h` or `2 d`."""
    seconds = max(duration.total_seconds(), 0)
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    size, unit = next(
        ((size, unit) for size, unit in UNITS if seconds >= 2 * size), (1, "s")
    )
    return f"{seconds / size:.0f} {unit}"


def times(count: int) -> str:
    words = {1: "once", 2: "twice", 3: "three times", 4: "four times"}
    return words.get(count, f"{count} times")


def result(attempt: Attempt) -> str:
    """Return `HTTP 500`, `Timeout` or another short result."""
    if attempt.status_code is not None:
        return f"HTTP {attempt.status_code}"
    return SHORT.get(attempt.outcome, attempt.outcome)


SHORT: dict[str, str] = {
    Outcome.HTTP: "No valid HTTP",
    Outcome.TIMEOUT: "Timeout",
    Outcome.DNS: "Name not found",
    Outcome.CONNECT: "No connection",
    Outcome.TLS: "TLS failed",
    Outcome.BLOCKED: "Address refused",
    Outcome.UNSIGNED: "Not signed",
    Outcome.INTERRUPTED: "Interrupted",
}


def sentence(attempt: Attempt, *, timeout_s: float) -> str:
    """Return what an attempt met, as a clause: `your server answered 500`."""
    if attempt.status_code is not None:
        return f"your server answered {_answer(attempt)}"
    clauses: dict[str, str] = {
        Outcome.TIMEOUT: f"your server did not answer within {timeout_s:g} s",
        Outcome.UNSIGNED: "the event could not be signed",
        Outcome.INTERRUPTED: "our process ended during the attempt",
    }
    return clauses.get(attempt.outcome) or attempt.error or "the attempt failed"


def _answer(attempt: Attempt) -> str:
    """Return the status, with what the receiver asked for in brackets."""
    status, _, asked = attempt.error.removeprefix("HTTP ").partition(", ")
    return f"{status} ({asked})" if asked else str(attempt.status_code)


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

    `later` are replays of the event to the same endpoint.
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
    return f"Delivered{number}: your server answered {_answer(last)} in {pause}."


def _failures(attempts: Sequence[Attempt], timeout_s: float) -> str:
    if not attempts:
        return ""
    clauses = [sentence(attempt, timeout_s=timeout_s) for attempt in attempts]
    if len(clauses) == 1:
        return clauses[0]
    end = attempts[-1].started_at + timedelta(milliseconds=attempts[-1].duration_ms)
    span = in_words(end - attempts[0].started_at)
    if len(set(clauses)) == 1:
        return f"{clauses[0]}, {times(len(clauses))} in {span}"
    return f"{len(clauses)} attempts in {span} failed, and the last time {clauses[-1]}"


def _end(delivery: Delivery, failures: str) -> str:
    """Return why a delivery failed: what its attempts met, or what ended it before."""
    error = delivery.last_error
    if error.startswith(ENDED_BY_PEOPLE):
        return f"{error}; before, {failures}" if failures else error
    return failures or error or "no attempt was made"


ENDED_BY_PEOPLE = ("cancelled", "endpoint deleted", "endpoint inactive")


ORIGINS: dict[str, str] = {
    Delivery.Trigger.EVENT: "sent for the event",
    Delivery.Trigger.TEST: "test",
    Delivery.Trigger.REPLAY: "sent again by a replay",
    Delivery.Trigger.MANUAL: "resent by hand",
}


def origin(delivery: Delivery) -> str:
    """Return why there is a delivery."""
    return ORIGINS.get(delivery.trigger, delivery.trigger)


def summary(delivery: Delivery) -> str:
    """Return the result of a delivery in a few words."""
    attempts = f"{delivery.attempts} attempt{'' if delivery.attempts == 1 else 's'}"
    if delivery.status == Delivery.Status.DELIVERED:
        return f"Delivered after {attempts}"
    if not delivery.last_error:
        return "Not tried yet" if not delivery.attempts else f"In its {attempts}"
    return f"{delivery.last_error[:120]} after {attempts}"


def state(delivery: Delivery) -> tuple[str, str]:
    """Return the tone and the word of a delivery's badge."""
    if delivery.status == Delivery.Status.DELIVERED:
        return "success", "Delivered"
    if delivery.status == Delivery.Status.FAILED:
        return "error", "Failed"
    if delivery.claimed_by is not None:
        return "pending", "Sending"
    return "pending", "Retrying" if delivery.attempts else "Waiting"
