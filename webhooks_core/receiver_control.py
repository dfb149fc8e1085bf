"""The receiver's word: what a response asks for beside the repetition of its own request. Pure.

The header is that of Standard Webhooks' proposal "Delivery control" (pull request 291 of
standard-webhooks/standard-webhooks, 2026-07-14).
"""

from __future__ import annotations

from typing import NamedTuple

from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import AttemptResult

HEADER = b"webhook-delivery"
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
        answer = f"{answer} with {HEADER.decode()}: {in_header}"
        wish = DISABLE if DISABLE in {wish, in_header} else in_header
    if not wish or (wish == ABORT and result.outcome == Outcome.OK):
        return None
    return Word(wish == DISABLE, f"{answer}, {EFFECTS[wish]}")


def _in_headers(result: AttemptResult) -> str:
    values = {
        value.strip().lower()
        for name, value in result.response_headers
        if name.lower() == HEADER
    }
    wishes = (wish for wish in (DISABLE, ABORT) if wish.encode() in values)
    return next(wishes, "")
