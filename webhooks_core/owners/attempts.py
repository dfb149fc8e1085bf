"""The attempts of a delivery as pages show them. No query."""

from __future__ import annotations

from dataclasses import dataclass

from webhooks_core.models import Attempt
from webhooks_core.network.outcomes import Outcome
from webhooks_core.owners.payloads import Text

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt; `after` is how long after the event, `hidden` why there is no response to see.

    `error` is empty if it repeats the result, as `HTTP 503` repeats `http 503`.
    """

    attempt: Attempt
    tone: str
    result: str
    error: str
    after: str
    request_headers: Headers
    response_headers: Headers
    response: Text
    hidden: str


def step(
    attempt: Attempt, *, result: str, response: Text, after: str = "", hidden: str = ""
) -> Step:
    """Return an attempt in the words of a page: `result` names how it ended."""
    is_repeated = attempt.error.casefold() == result.casefold()
    details = attempt.details
    return Step(
        attempt=attempt,
        tone=tone(attempt),
        result=result,
        error="" if is_repeated else attempt.error,
        after=after,
        request_headers=headers(details.get("request")),
        response_headers=[] if hidden else headers(details.get("response")),
        response=Text("", is_cut=False) if hidden else response,
        hidden=hidden,
    )


def tone(attempt: Attempt) -> str:
    return "success" if attempt.outcome == Outcome.OK else "error"


def headers(lines: str | None) -> Headers:
    """Return the names and values of stored header lines."""
    pairs = (line.partition(": ") for line in (lines or "").split("\r\n") if line)
    return [(name, value) for name, _, value in pairs]
