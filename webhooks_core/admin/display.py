"""How rows appear on pages. All input from outside is escaped, or is plain text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch, QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.dispatch.signer import signers
from webhooks_core.dispatch.sql.endpoints import Body
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network.outcomes import Outcome
from webhooks_core.secrets import HIDDEN, SecretUnreadableError

# Enough to recognise a payload; the download has all of it.
SHOWN_CHARACTERS = 20_000


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
    if delivery.status == Delivery.Status.DELIVERED:
        return badge("success", "Delivered")
    if delivery.status == Delivery.Status.FAILED:
        return badge("error", "Failed")
    if delivery.claimed_by is not None:
        return badge("pending", "Sending")
    if is_suspended(delivery):
        return badge("neutral", "Suspended")
    return badge("pending", "Retrying" if delivery.attempts else "Pending")


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


def tone(attempt: Attempt) -> str:
    return "success" if attempt.outcome == Outcome.OK else "error"


@dataclass(frozen=True, slots=True)
class Text:
    """A text, cut to what a page can show."""

    text: str
    is_cut: bool

    @classmethod
    def of(cls, value: bytes | str) -> Text:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "backslashreplace")
        return cls(value[:SHOWN_CHARACTERS], len(value) > SHOWN_CHARACTERS)


def pretty(raw: bytes) -> Text | None:
    """Return JSON with line breaks; None if the bytes are not JSON."""
    try:
        return Text.of(pretty_json(json.loads(raw)))
    except (ValueError, RecursionError):
        return None


def pretty_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt in the timeline of a delivery."""

    attempt: Attempt
    tone: str
    result: str
    error: str
    response: Text
    request_headers: list[tuple[str, str]]
    response_headers: list[tuple[str, str]]


def timeline(attempts: Iterable[Attempt]) -> list[Step]:
    return [
        Step(
            attempt,
            tone(attempt),
            result(attempt),
            _error(attempt),
            Text.of(bytes(attempt.response_body)),
            _headers(attempt.details.get("request")),
            _headers(attempt.details.get("response")),
        )
        for attempt in attempts
    ]


def _headers(lines: str | None) -> list[tuple[str, str]]:
    """Return the names and values of stored header lines."""
    pairs = (line.partition(": ") for line in lines.split("\r\n")) if lines else ()
    return [(name, value) for name, _, value in pairs]


def _error(attempt: Attempt) -> str:
    """Return an error unless it repeats the result, as `HTTP 503` repeats `http 503`."""
    is_repeated = attempt.error.casefold() == result(attempt).casefold()
    return "" if is_repeated else attempt.error


def headers(delivery: Delivery, *, now: datetime) -> Mapping[str, str] | None:
    """Return the headers that an attempt would carry now; None if it cannot be signed.

    The owner's custom headers may hold credentials: their values are hidden.
    """
    event, endpoint = delivery.event, delivery.endpoint
    if profiles.find(endpoint.profile) is None:
        return None
    body = Body(event.public_id, event.type, bytes(event.body))
    try:
        signer = signers([endpoint], now)[endpoint.pk]
        values = signer.headers(delivery.public_id, body, int(now.timestamp()))
        custom = custom_names(endpoint)
        return {name: HIDDEN if name in custom else values[name] for name in values}
    except SecretUnreadableError:
        return None


def custom_names(endpoint: Endpoint) -> list[str]:
    """Return the names of an endpoint's custom headers. Raises SecretUnreadableError."""
    encrypted = endpoint.custom_headers
    return [] if encrypted is None else list(json.loads(encrypted.decrypt()))


def curl(delivery: Delivery, headers: Mapping[str, str], body: Text) -> str:
    """Return a command for a POSIX shell that sends what an attempt would send now."""
    data = (
        ["--data-binary", f"@{delivery.event.public_id}.json"]
        if body.is_cut
        else ["--data-raw", body.text]
    )
    url = ["--path-as-is", delivery.endpoint.url]
    parts = [["curl", "--globoff", "--request", "POST", *url]]
    parts += [["--header", f"{name}: {value}"] for name, value in headers.items()]
    parts.append(data)
    return " \\\n  ".join(shlex.join(part) for part in parts)
