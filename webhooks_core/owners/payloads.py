"""What is sent, as pages show it: bodies, headers, and the command that sends the same."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse

from webhooks_core import profiles
from webhooks_core.dispatch.signer import Body, signers
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.secrets import HIDDEN, SecretUnreadableError

# Enough to recognise a payload; the download has all of it.
SHOWN_CHARACTERS = 20_000


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


def download(event: Event) -> HttpResponse:
    """Return the exact bytes as a download: a browser must not display them."""
    disposition = f'attachment; filename="{event.public_id}.json"'
    return HttpResponse(
        bytes(event.body),
        content_type="application/octet-stream",
        headers={"Content-Disposition": disposition},
    )


def pretty(raw: bytes) -> Text | None:
    """Return JSON with line breaks; None if the bytes are not JSON."""
    try:
        return Text.of(pretty_json(json.loads(raw)))
    except (ValueError, RecursionError):
        return None


def pretty_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


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
