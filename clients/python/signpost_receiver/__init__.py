"""Verify the webhooks of Signpost and read their events."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from signpost_receiver.events import Event

__all__ = ["Event", "SignatureError", "verify"]

MAX_HEADER = 4096
EMPTY = {"", "whsec_"}
_UNIX_TIME = re.compile(r"[0-9]{1,12}")


class SignatureError(ValueError):
    """The request has no valid signature; the message says which part is wrong."""


class _Signed(NamedTuple):
    """One signature of a request: the digests that it carries, and what they cover."""

    timestamp: str
    digests: Sequence[str]
    event_id: str | None = None

    def expected(self, secret: str, body: bytes) -> str:
        if self.event_id is None:
            message = self.timestamp.encode() + b"." + body
            return hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
        start = f"{self.event_id}.{self.timestamp}.".encode(errors="backslashreplace")
        digest = hmac.new(_standard_key(secret), start + body, hashlib.sha256).digest()
        return base64.b64encode(digest).decode()


def verify(
    secret: str | Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = 300,
    now: float | None = None,
    prefixes: Sequence[str] = ("X-Recording", "X-Gateway"),
) -> Event:
    """Return the event of a genuine request. Raises SignatureError for every other request.

    `body` is the raw body as it arrived. While you rotate a secret, pass the new and the old one.
    An empty secret, or `whsec_` alone, fits no request, also beside another secret.
    `tolerance_s` is the largest accepted distance in seconds between the signed time and `now`;
    0 skips this check. `prefixes` are the products' header prefixes. A request without their
    signature needs the headers of Standard Webhooks.
    """
    secrets = _checked(secret)
    signed = _read({name.lower(): value for name, value in headers.items()}, prefixes)
    if not _UNIX_TIME.fullmatch(signed.timestamp):
        raise SignatureError("the timestamp is not a unix time in seconds")
    moment = time.time() if now is None else now
    distance = abs(moment - int(signed.timestamp))
    if tolerance_s and not distance <= tolerance_s:  # NaN skips no check
        raise SignatureError("the timestamp is too far from now")
    # Every pair is compared, so that the time taken does not depend on which one fits.
    fits = [
        hmac.compare_digest(
            signed.expected(one, body).encode(),
            digest.encode(errors="backslashreplace"),
        )
        for one in secrets
        for digest in signed.digests
    ]
    if not any(fits):
        raise SignatureError("no signature fits secret, timestamp and body")
    return _event(body)


def _checked(secret: object) -> list[str]:
    """Return the secrets. Raises SignatureError if one is missing or empty: anyone can sign with it."""
    is_list = isinstance(secret, Sequence) and not isinstance(secret, str | bytes)
    secrets = list(cast("Sequence[object]", secret)) if is_list else [secret]
    if not all(isinstance(one, str) and one.strip() not in EMPTY for one in secrets):
        raise SignatureError("a secret is empty or not a text")
    return cast("list[str]", secrets)


def _event(body: bytes) -> Event:
    try:
        event = json.loads(body)
    except ValueError as error:
        raise SignatureError("the body is not JSON") from error
    if not isinstance(event, dict) or not isinstance(event.get("type"), str):
        raise SignatureError("the body is not an event")
    return cast("Event", event)


def _read(headers: Mapping[str, Any], prefixes: Sequence[str]) -> _Signed:
    for prefix in map(str.lower, prefixes):
        if (header := _text(headers, f"{prefix}-signature")) is not None:
            if header.startswith("sha256="):
                timestamp = _text(headers, f"{prefix}-timestamp") or ""
                return _Signed(timestamp, [header.removeprefix("sha256=")])
            return _timestamped(header)
    header = _text(headers, "webhook-signature")
    event_id = _text(headers, "webhook-id")
    if header is None or event_id is None:
        raise SignatureError("the request has no signature header")
    given = [part.partition(",") for part in header.split(" ")]
    digests = [digest for version, _, digest in given if version == "v1"]
    return _Signed(_text(headers, "webhook-timestamp") or "", digests, event_id)


def _timestamped(header: str) -> _Signed:
    """Read `t=<unix time>,v1=<hex>`, with a `v1=` for each secret."""
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for key, _, value in pairs if key == "t"]
    digests = [value for key, _, value in pairs if key == "v1"]
    if len(times) != 1 or not digests:
        raise SignatureError("the signature header is not t=<unix time>,v1=<hex>")
    return _Signed(times[0], digests)


def _text(headers: Mapping[str, Any], name: str) -> str | None:
    """Return a header's value, or None without one."""
    value = headers.get(name)
    if value is not None and (not isinstance(value, str) or len(value) > MAX_HEADER):
        raise SignatureError(f"the {name} header is too long or not a text")
    return value


def _standard_key(secret: str) -> bytes:
    """Return the key as Standard Webhooks reads a secret: `whsec_`, then base64."""
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError as error:
        raise SignatureError("the secret is not whsec_ and base64") from error
