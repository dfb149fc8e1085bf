"""The signature schemes that a profile picks from: what each writes, verifies and reads.

To add one: its functions, and its line in SCHEMES.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from webhooks_core.signing.signatures import (
    sha256_signature,
    timestamped_signature,
    verify_sha256,
    verify_timestamped,
)

_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


class SignatureHeaders(NamedTuple):
    """The values of `<prefix>-Signature` and, where a scheme has it, `<prefix>-Timestamp`."""

    signature: str
    timestamp: str = ""

    @classmethod
    def of(cls, headers: Mapping[str, str], prefix: str) -> Self:
        """Return those of a request; its header names are in lower case."""
        prefix = prefix.lower()
        return cls(
            headers.get(f"{prefix}-signature", ""),
            headers.get(f"{prefix}-timestamp", ""),
        )

    def named(self, prefix: str) -> dict[str, str]:
        """Return the headers as they are sent."""
        timestamp = {f"{prefix}-Timestamp": self.timestamp} if self.timestamp else {}
        return timestamp | {f"{prefix}-Signature": self.signature}


@dataclass(slots=True)
class Reading:
    """A signature read as generously as can be; `faults` says what was wrong with its form."""

    timestamp: str = ""
    digests: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def add_digest(self, digest: str) -> None:
        """Add the hexadecimal digest that a text stands for, or say why it is none."""
        raw = _from_base64(digest)
        if _HEX.fullmatch(digest):
            self.digests.append(digest)
        elif _HEX.fullmatch(digest.lower()):
            self.faults.append("is in upper case; hexadecimal digits are lower case")
            self.digests.append(digest.lower())
        elif raw:
            self.faults.append("is base64; hexadecimal digits are needed")
            self.digests.append(raw.hex())
        else:
            self.faults.append(
                f"has {len(digest)} characters of a digest; "
                "64 hexadecimal digits are needed"
            )


def _from_base64(digest: str) -> bytes:
    try:
        raw = base64.b64decode(digest, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if len(raw) == 32 else b""


class Verify(Protocol):
    """Accepts a signature or raises SignatureError; a tolerance of 0 accepts any age."""

    def __call__(
        self,
        secret: str,
        given: SignatureHeaders,
        *,
        body: bytes,
        now: float,
        tolerance_s: float,
    ) -> None: ...


def sha256_digest(secret: bytes, timestamp: bytes, body: bytes) -> str:
    """Return the hexadecimal HMAC-SHA256 over `<timestamp>.<body>`."""
    return hmac.digest(secret, timestamp + b"." + body, "sha256").hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureScheme:
    """One way to sign a request.

    `sign` takes the secrets, the current one first, a unix time and the body.
    `signs_with_all` is true if a request carries a signature of every secret, so that the old
    secret is still honoured while a rotation overlaps. `read` and `digest` serve diagnosis:
    what a header says, and what it would say for other inputs.
    """

    sign: Callable[[Sequence[str], int, bytes], SignatureHeaders]
    verify: Verify
    read: Callable[[SignatureHeaders], Reading]
    signs_with_all: bool
    description: str
    digest: Callable[[bytes, bytes, bytes], str] = sha256_digest


# `<prefix>-Signature: sha256=<hex>` beside `<prefix>-Timestamp`; the newest secret alone.


def _sign_sha256(
    secrets: Sequence[str], timestamp: int, body: bytes
) -> SignatureHeaders:
    signature = sha256_signature(secrets[0], timestamp, body)
    return SignatureHeaders(signature, str(timestamp))


def _verify_sha256(
    secret: str,
    given: SignatureHeaders,
    *,
    body: bytes,
    now: float,
    tolerance_s: float,
) -> None:
    verify_sha256(
        secret,
        timestamp=given.timestamp,
        signature=given.signature,
        body=body,
        now=now,
        tolerance_s=tolerance_s,
    )


def _read_sha256(given: SignatureHeaders) -> Reading:
    reading = Reading(given.timestamp)
    prefix, _, digest = given.signature.rpartition("sha256=")
    if prefix or not given.signature.startswith("sha256="):
        reading.faults.append("does not start with sha256=")
    reading.add_digest(digest)
    return reading


# `<prefix>-Signature: t=<unix time>,v1=<hex>`, one `v1=` for each secret.


def _sign_timestamped(
    secrets: Sequence[str], timestamp: int, body: bytes
) -> SignatureHeaders:
    return SignatureHeaders(timestamped_signature(secrets, timestamp, body))


def _verify_timestamped(
    secret: str,
    given: SignatureHeaders,
    *,
    body: bytes,
    now: float,
    tolerance_s: float,
) -> None:
    verify_timestamped(
        secret,
        signature=given.signature,
        body=body,
        now=now,
        tolerance_s=tolerance_s,
    )


def _read_timestamped(given: SignatureHeaders) -> Reading:
    pairs = [part.strip().partition("=") for part in given.signature.split(",")]
    times = [text for key, _, text in pairs if key == "t"]
    digests = [text for key, _, text in pairs if key == "v1"]
    reading = Reading(times[0] if times else "")
    if len(times) > 1:
        reading.faults.append("holds more than one t=")
    if not digests:
        reading.faults.append("is not t=<unix time>,v1=<hex>")
    for digest in digests:
        reading.add_digest(digest)
    return reading


SCHEMES: Mapping[str, SignatureScheme] = {
    "sha256": SignatureScheme(
        sign=_sign_sha256,
        verify=_verify_sha256,
        read=_read_sha256,
        signs_with_all=False,
        description="`sha256=` and the hexadecimal HMAC-SHA256 over timestamp, `.` and body.",
    ),
    "timestamped": SignatureScheme(
        sign=_sign_timestamped,
        verify=_verify_timestamped,
        read=_read_timestamped,
        signs_with_all=True,
        description="`t=` and the timestamp; for each secret `v1=` and the hexadecimal "
        "HMAC-SHA256 over timestamp, `.` and body.",
    ),
}
