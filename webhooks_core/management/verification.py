"""What a receiver reads in a request: which event it is, and whether its signature is genuine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from webhooks_core import profiles
from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.schemes import SignatureError, SignatureHeaders


@dataclass(frozen=True, slots=True)
class Received:
    """A POST as received; header names are in lower case, `at` is unix time in seconds."""

    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def event_type(self) -> str:
        return self._header("event") or self._field("type")

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

    def _header(self, name: str) -> str:
        prefixes = (profile.header_prefix for profile in profiles.registered())
        names = (f"{prefix}-{name}".lower() for prefix in prefixes)
        return next((self.headers[key] for key in names if key in self.headers), "")

    def _field(self, name: str) -> str:
        try:
            value = orjson.loads(self.body)[name]
        except (ValueError, TypeError, KeyError):  # no JSON object
            return ""
        return value if isinstance(value, str) else ""


class Verification(NamedTuple):
    """Whether a signature is genuine: `is_verified` is None if there was no secret to check with."""

    is_verified: bool | None
    message: str


def verify(
    received: Received, *, secrets: Sequence[str], tolerance_s: float = 300
) -> Verification:
    """Check the signature with each secret; say why if none fits."""
    if not received.signed_by:
        known = [profile.signature_header for profile in profiles.registered()]
        return Verification(False, f"not signed: no {' or '.join(known)}")
    if not secrets:
        name = received.signed_by[0].name
        return Verification(None, f"{name} signature, not checked: no secret was given")
    refusals = []
    for profile in received.signed_by:
        headers = SignatureHeaders.of(received.headers, profile.header_prefix)
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
                refusals.append(f"{profile.name} signature refused: {error}")
            else:
                return Verification(True, f"{profile.name} signature verified")
    return Verification(False, refusals[-1])
