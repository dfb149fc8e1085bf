"""The signature schemes that a profile picks from. Pure; the key is the whole secret, as a text.

To add one: its functions, and its line in SCHEMES, before a profile names it.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

PREFIX = "whsec_"  # of a secret
MAX_HEADER = 4096
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNIX_TIME = re.compile(r"[0-9]{1,12}", re.ASCII)


class SignatureError(ValueError):
    """A signature is malformed or does not fit; the message says which part is wrong."""


class SecretFormError(ValueError):
    """A secret is not of the form that Standard Webhooks need."""


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


# What signature headers hold: the signed time, and a digest for each secret.
ParsedSignature = tuple[str, Sequence[str]]


def is_empty(secret: str) -> bool:
    """Return True if a secret holds no key: nothing, white space, or the prefix alone."""
    return secret.strip() in {"", PREFIX}


def standard_key(secret: str) -> bytes:
    """Return the key as Standard Webhooks reads a secret: `whsec_`, then base64.

    Raises SecretFormError.
    """
    if not secret.startswith(PREFIX):
        raise SecretFormError(f"the secret does not start with {PREFIX}")
    if is_empty(secret):
        raise SecretFormError("the secret is empty")
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError as error:
        text = f"the secret is not base64 after {PREFIX}"
        raise SecretFormError(text) from error


def sha256_digest(secret: str, timestamp: str, body: bytes) -> str:
    """Return the hexadecimal HMAC-SHA256 over `<timestamp>.<body>`."""
    message = timestamp.encode() + b"." + body
    return hmac.digest(secret.encode(), message, "sha256").hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureScheme:
    """One way to sign a request.

    `sign` takes the secrets, the current one first, a unix time and the body. `parse` reads the
    headers that it returned, and raises SignatureError. `digest` returns the digest of one
    secret, as `parse` does. `signs_with_all` is true if a request carries a digest of every
    secret, so that the old secret still verifies while a rotation overlaps.
    """

    sign: Callable[[Sequence[str], int, bytes], SignatureHeaders]
    parse: Callable[[SignatureHeaders], ParsedSignature]
    digest: Callable[[str, str, bytes], str] = sha256_digest
    signs_with_all: bool = False
    description: str

    def verify(
        self,
        secret: str,
        headers: SignatureHeaders,
        *,
        body: bytes,
        now: float,
        tolerance_s: float = 300,
    ) -> None:
        """Accept a signature. Raises SignatureError, and nothing else, for any headers.

        `tolerance_s` is the largest accepted distance in seconds between the signed time and
        `now`; 0 skips the freshness check.
        """
        if is_empty(secret):
            raise SignatureError("the secret is empty")
        for name, value in headers._asdict().items():
            if not isinstance(value, str):
                raise SignatureError(f"the {name} header is missing or not a text")
        timestamp, digests = self.parse(headers)
        if not _UNIX_TIME.fullmatch(timestamp):
            raise SignatureError("the timestamp is not a unix time in seconds")
        distance = abs(now - int(timestamp))
        if tolerance_s and not distance <= tolerance_s:  # NaN skips no check
            raise SignatureError("the timestamp is too far from now")
        expected = self.digest(secret, timestamp, body).encode()
        # Every digest is compared, so that the time taken does not depend on which one fits.
        given = (digest.encode(errors="backslashreplace") for digest in digests)
        fits = [hmac.compare_digest(expected, digest) for digest in given]
        if not any(fits):
            raise SignatureError("no signature fits secret, timestamp and body")


# `<prefix>-Signature: sha256=<hex>` beside `<prefix>-Timestamp`; the newest secret alone.


def _sign_sha256(
    secrets: Sequence[str], timestamp: int, body: bytes
) -> SignatureHeaders:
    digest = sha256_digest(secrets[0], str(timestamp), body)
    return SignatureHeaders(f"sha256={digest}", str(timestamp))


def _parse_sha256(headers: SignatureHeaders) -> ParsedSignature:
    name, _, digest = headers.signature.partition("=")
    if name != "sha256" or not _DIGEST.fullmatch(digest):
        raise SignatureError("the signature header is not sha256=<64 hex digits>")
    return headers.timestamp, [digest]


# `<prefix>-Signature: t=<unix time>,v1=<hex>`, one `v1=` for each secret.


def _sign_timestamped(
    secrets: Sequence[str], timestamp: int, body: bytes
) -> SignatureHeaders:
    digests = [sha256_digest(secret, str(timestamp), body) for secret in secrets]
    parts = [f"v1={digest}" for digest in digests]
    return SignatureHeaders(",".join([f"t={timestamp}", *parts]))


def _parse_timestamped(headers: SignatureHeaders) -> ParsedSignature:
    if len(headers.signature) > MAX_HEADER:
        raise SignatureError("the signature header is too long")
    pairs = [part.strip().partition("=") for part in headers.signature.split(",")]
    times = [value for key, _, value in pairs if key == "t"]
    digests = [value for key, _, value in pairs if key == "v1"]
    digests = [digest for digest in digests if _DIGEST.fullmatch(digest)]
    if len(times) != 1 or not digests:
        raise SignatureError("the signature header is not t=<unix time>,v1=<hex>")
    return times[0], digests


SCHEMES: dict[str, SignatureScheme] = {
    "sha256": SignatureScheme(
        sign=_sign_sha256,
        parse=_parse_sha256,
        description="sha256= and the hexadecimal HMAC-SHA256 of the timestamp, a dot and the body.",
    ),
    "timestamped": SignatureScheme(
        sign=_sign_timestamped,
        parse=_parse_timestamped,
        signs_with_all=True,
        description="t= and the timestamp; for each secret v1= and the hexadecimal HMAC-SHA256 "
        "of the timestamp, a dot and the body.",
    ),
}
