"""A delivery with all of its attempts, as its owner may see it: what REST, MCP and pages show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import RESPONSE_BODY_BYTES
from webhooks_core.owners import wording
from webhooks_core.owners.state import in_words
from webhooks_core.secrets import HIDDEN

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SeenAttempt:
    """An attempt, read with its delivery; what came back is None where it is for operators alone."""

    attempt: Attempt
    url: str
    request_headers: Headers
    response_headers: Headers | None
    response_text: str | None

    @classmethod
    def of(cls, attempt: Attempt, *, is_hidden: bool) -> SeenAttempt:
        details, body = attempt.details, bytes(attempt.response_body)
        return cls(
            attempt=attempt,
            url=details.get("url", ""),
            request_headers=_pairs(details.get("request")),
            response_headers=None if is_hidden else _pairs(details.get("response")),
            response_text=None if is_hidden else _text(body),
        )

    @property
    def is_success(self) -> bool:
        return self.attempt.outcome == Outcome.OK

    @property
    def error_class(self) -> str:
        return "" if self.is_success else self.attempt.outcome

    @property
    def tone(self) -> str:
        return "success" if self.is_success else "error"

    @property
    def result(self) -> str:
        return wording.result(self.attempt)

    @property
    def error(self) -> str:
        """The error, unless it repeats the result, as `http 503` repeats `HTTP 503`."""
        error = self.attempt.error
        return "" if error.casefold() == self.result.casefold() else error

    @property
    def after(self) -> str:
        """How long after the event it began."""
        return in_words(self.attempt.started_at - self.attempt.delivery.created_at)

    @property
    def is_cut(self) -> bool:
        return len(self.attempt.response_body) >= RESPONSE_BODY_BYTES


def _text(body: bytes) -> str:
    return body.decode(errors="replace").replace("\x00", "�")


def _pairs(text: str | None) -> Headers:
    """Return the names and values of stored header lines."""
    pairs = (line.partition(": ") for line in (text or "").split("\r\n") if line)
    return [(name, value) for name, _, value in pairs]


def snapshot(delivery: Delivery) -> tuple[Delivery, list[Attempt]]:
    """Return a delivery, read with its event and endpoint, and its attempts, as of one moment.

    Each attempt is read with the delivery. If there is none yet, the delivery was read before.
    """
    rows = delivery.attempt_set.select_related("delivery").order_by("number")
    attempts = list(rows)
    if not attempts:
        return delivery, attempts
    current = attempts[0].delivery
    current.event, current.endpoint = delivery.event, delivery.endpoint
    return current, attempts


def seen(delivery: Delivery, attempts: Sequence[Attempt]) -> list[SeenAttempt]:
    """Return the attempts of a delivery as its owner may see them."""
    is_hidden = delivery.endpoint.trusted
    return [SeenAttempt.of(attempt, is_hidden=is_hidden) for attempt in attempts]


def details_of(delivery: Delivery) -> dict[str, Any]:
    """Return what an owner may see of a delivery, read with its event and endpoint.

    `sensitive` names the headers with masked values.
    """
    delivery, attempts = snapshot(delivery)
    shown = seen(delivery, attempts)
    pairs = [pair for attempt in shown for pair in attempt.request_headers]
    return {
        "delivery": delivery,
        "waits": wording.waits(delivery, timezone.now()),
        "attempts": shown,
        "sensitive": list(dict.fromkeys(n for n, value in pairs if value == HIDDEN)),
    }
