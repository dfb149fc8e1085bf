"""How rows are shown to people. Whatever strangers sent leaves here escaped, or as plain text."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.encryption import MASK, SecretUnreadableError
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.outcomes import Outcome
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.secrets import PREFIX
from webhooks_core.signing.signer import Body, signers

# Enough to recognise a payload by; the rest of up to a megabyte is a download.
SHOWN_CHARACTERS = 20_000
HIDDEN = MASK.removeprefix(PREFIX)


def badge(tone: str, text: str) -> SafeString:
    """Return a coloured word; `tone` is good, busy, bad or quiet."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def when(at: datetime | None) -> SafeString | None:
    """Return a time to the second, in UTC."""
    if at is None:
        return None
    shown = f"{at:%Y-%m-%d %H:%M:%S}"
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), shown)


def dialect(endpoint: Endpoint) -> WebhookProfile | None:
    """Return the profile of an endpoint; None when its product is not installed."""
    return profiles.find(endpoint.profile)


def state(delivery: Delivery) -> SafeString:
    """Return what became of a delivery so far."""
    if delivery.status == Delivery.Status.DELIVERED:
        return badge("success", "Delivered")
    if delivery.status == Delivery.Status.FAILED:
        return badge("error", "Failed")
    if delivery.claimed_by is not None:
        return badge("pending", "Sending")
    if is_held(delivery):
        return badge("neutral", "Held")
    return badge("pending", "Retrying" if delivery.attempts else "Pending")


def is_held(delivery: Delivery) -> bool:
    """Tell whether a delivery waits for its endpoint, whatever time it was due at."""
    is_idle = delivery.status == Delivery.Status.PENDING and delivery.claimed_by is None
    return is_idle and not delivery.endpoint.is_receiving


def result(attempt: Attempt) -> str:
    """Return how an attempt ended in a word or two: `http 503`, `dns`."""
    return f"{attempt.outcome} {attempt.status_code or ''}".rstrip()


def tone(attempt: Attempt) -> str:
    return "success" if attempt.outcome == Outcome.OK else "error"


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes as text, cut to what a page can show."""

    text: str
    is_cut: bool

    @classmethod
    def of(cls, raw: bytes) -> Text:
        return cls.cut(raw.decode("utf-8", "backslashreplace"))

    @classmethod
    def cut(cls, text: str) -> Text:
        return cls(text[:SHOWN_CHARACTERS], len(text) > SHOWN_CHARACTERS)


def pretty(raw: bytes) -> Text | None:
    """Return JSON with line breaks; None when the bytes are no JSON."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return Text.cut(json.dumps(value, indent=2, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt in the timeline of a delivery."""

    attempt: Attempt
    tone: str
    result: str
    error: str
    answer: Text


def timeline(attempts: Iterable[Attempt]) -> list[Step]:
    return [
        Step(it, tone(it), result(it), _error(it), Text.of(bytes(it.response_body)))
        for it in attempts
    ]


def _error(attempt: Attempt) -> str:
    """Return what an error says beyond the result: `HTTP 503` says no more than `http 503`."""
    told = attempt.error.casefold() == result(attempt).casefold()
    return "" if told else attempt.error


def headers(delivery: Delivery, *, now: datetime) -> Mapping[str, str] | None:
    """Return the headers that an attempt would carry now; None if it cannot be signed.

    An owner's own headers may hold credentials: of these only the names are told.
    """
    event, endpoint = delivery.event, delivery.endpoint
    if dialect(endpoint) is None:
        return None
    body = Body(event.public_id, event.type, bytes(event.body))
    try:
        signer = signers([endpoint], now)[endpoint.pk]
        sent = signer.headers(delivery.public_id, body, int(now.timestamp()))
        own = custom_names(endpoint)
        return {name: HIDDEN if name in own else sent[name] for name in sent}
    except SecretUnreadableError:
        return None


def custom_names(endpoint: Endpoint) -> list[str]:
    """Return the names of an endpoint's own headers. Raises SecretUnreadableError."""
    sealed = endpoint.custom_headers
    return [] if sealed is None else list(json.loads(sealed.decrypt()))


def curl(delivery: Delivery, sent: Mapping[str, str], body: Text) -> str:
    """Return a command for a POSIX shell that sends what we would send now."""
    data = (
        ["--data-binary", f"@{delivery.event.public_id}.json"]
        if body.is_cut
        else ["--data-raw", body.text]
    )
    parts = [["curl", "--globoff", "--request", "POST", delivery.endpoint.url]]
    parts += [["--header", f"{name}: {value}"] for name, value in sent.items()]
    parts.append(data)
    return " \\\n  ".join(shlex.join(part) for part in parts)
