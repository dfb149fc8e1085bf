"""What a receiver reads in a request: which event it is, and whether its signature is genuine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from webhooks_core import profiles
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.schemes import SignatureError, SignatureHeaders, is_empty
from webhooks_core.web.json_values import check_values

EMPTY = "a secret is empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A POST as received; header names are in lower case, `at` is unix time in seconds."""

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
        """The products whose signature header it has; they may share a prefix."""
        return [
            profile
            for profile in profiles.registered()
            if profile.signature_header.lower() in self.headers
        ]

    def json(self) -> Any:
        """Return the parsed body. Raises ValueError: not JSON, or too many values to show."""
        check_values(self.body)
        return orjson.loads(self.body)

    def _header(self, name: str) -> str:
        prefixes = (profile.header_prefix for profile in profiles.registered())
        names = (f"{prefix}-{name}".lower() for prefix in prefixes)
        return next((self.headers[key] for key in names if key in self.headers), "")

    def _field(self, name: str) -> str:
        try:
            value = self.json()[name]
        except (ValueError, TypeError, KeyError, IndexError):
            return ""
        return value if isinstance(value, str) else ""


class Verification(NamedTuple):
    """Whether a signature is genuine: `is_verified` is None if there was no secret to check with."""

    is_verified: bool | None
    message: str


def known_headers() -> list[str]:
    """Return the signature headers of all registered products."""
    return [profile.signature_header for profile in profiles.registered()]


def verify(
    received: Received, *, secrets: Sequence[str], tolerance_s: float
) -> Verification:
    """Check the signature with each secret; say why if none fits. An empty one refuses all."""
    signed_by = received.signed_by
    if not signed_by:
        return Verification(False, f"not signed: no {' or '.join(known_headers())}")
    if not secrets:
        name = signed_by[0].name
        message = f"{name} signature, not checked: no secret was given"
        return Verification(None, message)
    if any(map(is_empty, secrets)):
        return Verification(False, f"{signed_by[0].name} signature refused: {EMPTY}")
    refusals = []
    for profile in signed_by:
        error = _error(received, profile, secrets, tolerance_s)
        if error is None:
            return Verification(True, f"{profile.name} signature verified")
        refusals.append(f"{profile.name} signature refused: {error}")
    return Verification(False, refusals[0])


def _error(
    received: Received,
    profile: WebhookProfile,
    secrets: Sequence[str],
    tolerance_s: float,
) -> SignatureError | None:
    """Return why a signature of this product fits none of the secrets; None if one fits."""
    headers = SignatureHeaders.of(received.headers, profile.header_prefix)
    errors = []
    for secret in secrets:
        try:
            profile.scheme.verify(
                secret,
                headers,
                body=received.body,
                now=received.at,
                tolerance_s=tolerance_s,
            )
        except SignatureError as error:
            errors.append(error)
        else:
            return None
    return errors[-1]
