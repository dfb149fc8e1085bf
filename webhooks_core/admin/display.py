"""How rows appear on pages. All input from outside is escaped, or is plain text."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Prefetch, QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core.models import Attempt, Delivery
from webhooks_core.owners.attempts import Step, step
from webhooks_core.owners.payloads import Text
from webhooks_core.pages import wording


def badge(tone: str, text: str) -> SafeString:
    """Return a coloured label; `tone` is success, pending, error or neutral."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def time(at: datetime | None) -> SafeString | None:
    """Return a time to the second, in UTC."""
    if at is None:
        return None
    text = f"{at:%Y-%m-%d %H:%M:%S}"
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), text)


def host_and_path(url: str) -> str:
    """Return a url without its scheme and query, as people tell endpoints apart."""
    return url.partition("://")[2].partition("?")[0]


def state(delivery: Delivery) -> SafeString:
    """Return the status of a delivery as a badge."""
    if is_suspended(delivery):
        return badge("neutral", "Suspended")
    tone, word = wording.state(delivery)
    return badge(tone, "Pending" if word == "Waiting" else word)


def is_suspended(delivery: Delivery) -> bool:
    """Return True if a delivery waits because its endpoint receives nothing now."""
    is_idle = delivery.status == Delivery.Status.PENDING and delivery.claimed_by is None
    return is_idle and not delivery.endpoint.is_receiving


def with_attempts(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """Also read what a row of a list shows: endpoint, event and attempts, without bodies."""
    attempts = Attempt.objects.defer("response_body", "details").order_by("number")
    return (
        deliveries.select_related("endpoint", "event")
        .defer("event__body", "endpoint__custom_headers")
        .prefetch_related(Prefetch("attempt_set", attempts))
    )


def last_attempt(delivery: Delivery) -> Attempt | None:
    """Return the last attempt of a row of `with_attempts`, without a query."""
    attempts = list(delivery.attempt_set.all())
    return attempts[-1] if attempts else None


def result(attempt: Attempt | None) -> str:
    """Return `http 503` or `dns`; "" without an attempt."""
    return f"{attempt.outcome} {attempt.status_code or ''}".rstrip() if attempt else ""


def timeline(attempts: Iterable[Attempt]) -> list[Step]:
    return [
        step(
            attempt,
            result=result(attempt),
            response=Text.of(bytes(attempt.response_body)),
        )
        for attempt in attempts
    ]
