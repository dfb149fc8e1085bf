"""What a receiver can say about a request: is it signed by one of these secrets, and what is it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from webhooks_core import signing
from webhooks_core.signing import SignatureError


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

    def json(self) -> Any:
        """Return the parsed body. Raises ValueError."""
        return orjson.loads(self.body)

    def _header(self, name: str) -> str:
        return next(
            (
                self.headers[f"x-{scheme}-{name}"]
                for scheme in SCHEMES
                if f"x-{scheme}-{name}" in self.headers
            ),
            "",
        )

    def _field(self, name: str) -> str:
        try:
            value = self.json()[name]
        except (ValueError, TypeError, KeyError, IndexError):
            return ""
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a signature holds: `verified` is None when there was no secret to check with."""

    verified: bool | None
    told: str


def _check_recording(received: Received, secret: str, tolerance_s: float) -> None:
    signing.verify_sha256(
        secret,
        timestamp=received.headers.get("x-recording-timestamp", ""),
        signature=received.headers["x-recording-signature"],
        body=received.body,
        now=received.at,
        tolerance_s=tolerance_s,
    )


def _check_gateway(received: Received, secret: str, tolerance_s: float) -> None:
    signing.verify_timestamped(
        secret,
        signature=received.headers["x-gateway-signature"],
        body=received.body,
        now=received.at,
        tolerance_s=tolerance_s,
    )


SCHEMES: Mapping[str, Callable[[Received, str, float], None]] = {
    "recording": _check_recording,
    "gateway": _check_gateway,
}


def examine(
    received: Received, *, secrets: Sequence[str], tolerance_s: float
) -> Verdict:
    """Check the signature against each secret; say which part fails when none fits."""
    signed = [s for s in SCHEMES if f"x-{s}-signature" in received.headers]
    if not signed:
        return Verdict(
            False, "not signed: neither X-Recording- nor X-Gateway-Signature"
        )
    if not secrets:
        return Verdict(None, f"{signed[0]} signature, not checked: no secret was given")
    fault = ""
    for secret in secrets:
        try:
            SCHEMES[signed[0]](received, secret, tolerance_s)
        except SignatureError as error:
            fault = str(error)
        else:
            return Verdict(True, f"{signed[0]} signature verified")
    return Verdict(False, f"{signed[0]} signature refused: {fault}")
