"""A delivery with its payload and all of its attempts, as its owner may see it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.dispatch.signer import Body, RequestSigner
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.network.transport import RESPONSE_BODY_BYTES
from webhooks_core.owners import wording
from webhooks_core.owners.state import in_words
from webhooks_core.secrets import HIDDEN, SecretUnreadableError

# Enough to recognise a payload; the download has all of it.
SHOWN_CHARACTERS = 20_000
Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class SeenAttempt:
    """An attempt, read with its delivery; what came back is None where it is for operators alone."""

    attempt: Attempt
    url: str
    request_headers: Headers
    response_headers: Headers | None
    response_text: str | None

    @property
    def error_class(self) -> str:
        outcome = self.attempt.outcome
        return "" if outcome == Outcome.OK else outcome

    @property
    def tone(self) -> str:
        return "error" if self.error_class else "success"

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


def seen(delivery: Delivery) -> list[SeenAttempt]:
    """Return the attempts of a delivery, oldest first, as its owner may see them."""
    is_hidden = delivery.endpoint.trusted
    return [
        SeenAttempt(
            attempt=row,
            url=row.details.get("url", ""),
            request_headers=_pairs(row.details.get("request")),
            response_headers=None if is_hidden else _pairs(row.details.get("response")),
            response_text=None if is_hidden else _text(bytes(row.response_body)),
        )
        for row in delivery.attempt_set.order_by("number")
    ]


def details_of(delivery: Delivery) -> dict[str, Any]:
    """Return what an owner may see of a delivery, read with its event and endpoint.

    `sensitive` names the headers with masked values.
    """
    shown = seen(delivery)
    pairs = [pair for attempt in shown for pair in attempt.request_headers]
    return {
        "delivery": delivery,
        "waits": wording.waits(delivery, timezone.now()),
        "attempts": shown,
        "sensitive": list(dict.fromkeys(n for n, value in pairs if value == HIDDEN)),
    }


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
        return Text.of(json.dumps(json.loads(raw), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def headers(delivery: Delivery, *, now: datetime) -> Mapping[str, str] | None:
    """Return the headers that an attempt would carry now; None if it cannot be signed.

    The owner's custom headers may hold credentials: their values are hidden.
    """
    event, endpoint = delivery.event, delivery.endpoint
    if profiles.find(endpoint.profile) is None:
        return None
    body = Body(event.public_id, event.type, bytes(event.body))
    try:
        secrets = [row.value for row in endpoint.endpointsecret_set.current(now)]
        signer = RequestSigner(endpoint, secrets)
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
    parts = [["curl", "--globoff", "--include", "--request", "POST", *url]]
    parts += [["--header", f"{name}: {value}"] for name, value in headers.items()]
    parts.append(data)
    return " \\\n  ".join(shlex.join(part) for part in parts)
