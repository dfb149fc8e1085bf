"""What a receiver can say about a request: is it signed by one of these secrets, and what is it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from webhooks_core import profiles
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.schemes import SignatureHeaders
from webhooks_core.signing.signatures import SignatureError


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A POST as it came; header names are lower case, `at` is unix time in seconds."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def event_type(self) -> str:
        return self._header("event") or self._field("type") or self._field("event_type")

    @property
    def delivery_id(self) -> str:
        return self._header("delivery")

    @property
    def event_id(self) -> str:
        return self._field("id") or self._field("event_id")

    @property
    def signed_by(self) -> list[WebhookProfile]:
        """The products whose signature header it has; several may share a prefix."""
        return [
            it
            for it in profiles.registered()
            if it.signature_header.lower() in self.headers
        ]

    def json(self) -> Any:
        """Return the parsed body. Raises ValueError."""
        return orjson.loads(self.body)

    def _header(self, name: str) -> str:
        names = (f"{it.header_prefix}-{name}".lower() for it in profiles.registered())
        return next((self.headers[it] for it in names if it in self.headers), "")

    def _field(self, name: str) -> str:
        try:
            value = self.json()[name]
        except (ValueError, TypeError, KeyError, IndexError):
            return ""
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a signature holds: `verified` is None when there was no secret to check with."""

    verified: bool | None
    told: str


def known_headers() -> list[str]:
    """Return the names of the signature headers of all registered products."""
    return [it.signature_header for it in profiles.registered()]


def examine(
    received: Received, *, secrets: Sequence[str], tolerance_s: float
) -> Verification:
    """Check the signature against each secret; say which part fails when none fits."""
    signed_by = received.signed_by
    if not signed_by:
        return Verification(False, f"not signed: no {' or '.join(known_headers())}")
    if not secrets:
        told = f"{signed_by[0].name} signature, not checked: no secret was given"
        return Verification(None, told)
    told = ""
    for profile in signed_by:
        fault = _fault(received, profile, secrets, tolerance_s)
        if not fault:
            return Verification(True, f"{profile.name} signature verified")
        told = told or f"{profile.name} signature refused: {fault}"
    return Verification(False, told)


def _fault(
    received: Received,
    profile: WebhookProfile,
    secrets: Sequence[str],
    tolerance_s: float,
) -> str:
    """Return why a signature of this product fits none of the secrets; empty if one fits."""
    given = SignatureHeaders.of(received.headers, profile.header_prefix)
    fault = ""
    for secret in secrets:
        try:
            profile.scheme.verify(
                secret,
                given,
                body=received.body,
                now=received.at,
                tolerance_s=tolerance_s,
            )
        except SignatureError as error:
            fault = str(error)
        else:
            return ""
    return fault
