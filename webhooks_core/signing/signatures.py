"""The signature schemes. Pure functions of secret, time and body; the key is the whole secret."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence

MAX_HEADER = 4096


class SignatureError(ValueError):
    """A delivery's signature does not hold; the message says which part is wrong."""


def _hex(secret: str, timestamp: str, body: bytes) -> str:
    message = timestamp.encode() + b"." + body
    return hmac.digest(secret.encode(), message, "sha256").hex()


def sha256_signature(secret: str, timestamp: int, body: bytes) -> str:
    """Return `sha256=<hex>` over `<timestamp>.<body>`."""
    return "sha256=" + _hex(secret, str(timestamp), body)


def timestamped_signature(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    """Return `t=<timestamp>,v1=<hex>`, a digest as in `sha256_signature`.

    While a secret is being rotated there is one `v1=` for each secret.
    """
    signatures = (f"v1={_hex(secret, str(timestamp), body)}" for secret in secrets)
    return ",".join((f"t={timestamp}", *signatures))


def standard_signature(
    secrets: Sequence[str], message_id: str, timestamp: int, body: bytes
) -> str:
    """Return the `webhook-signature` of Standard Webhooks: one `v1,<base64>` per secret."""
    message = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.digest(standard_key(it), message, "sha256") for it in secrets)
    return " ".join("v1," + base64.b64encode(it).decode() for it in digests)


def standard_key(secret: str) -> bytes:
    """Return the key as Standard Webhooks reads a secret: `whsec_`, then base64.

    Raises ValueError for a secret that is not of that form.
    """
    if not secret.startswith("whsec_"):
        raise ValueError("the secret does not start with whsec_")
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def verify_sha256(
    secret: str,
    *,
    timestamp: str | None,
    signature: str | None,
    body: bytes,
    now: float,
    tolerance_s: float,
) -> None:
    """Verify a `sha256_signature`. Raises SignatureError, whatever the headers are.

    `tolerance_s` is the largest accepted age in seconds; 0 skips the freshness check.
    """
    timestamp = _text(timestamp, "timestamp")
    signature = _text(signature, "signature")
    _check_age(timestamp, now=now, tolerance_s=tolerance_s)
    if not signature.startswith("sha256="):
        raise SignatureError("the signature does not start with sha256=")
    expected = "sha256=" + _hex(secret, timestamp, body)
    if not _equal(expected, signature):
        raise SignatureError("the signature does not fit secret, timestamp and body")


def verify_timestamped(
    secret: str,
    *,
    signature: str | None,
    body: bytes,
    now: float,
    tolerance_s: float = 300,
) -> None:
    """Verify a `timestamped_signature`. Raises SignatureError, whatever the header is.

    `tolerance_s` is the largest accepted distance in seconds between the signed time and
    `now`; 0 skips the freshness check.
    """
    signature = _text(signature, "signature")
    if len(signature) > MAX_HEADER:
        raise SignatureError("the signature header is too long")
    pairs = [part.strip().partition("=") for part in signature.split(",")]
    times = [value for key, _, value in pairs if key == "t"]
    given = [value for key, _, value in pairs if key == "v1"]
    if len(times) != 1 or not given:
        raise SignatureError("the signature header is not t=<unix time>,v1=<hex>")
    _check_age(times[0], now=now, tolerance_s=tolerance_s)
    expected = _hex(secret, times[0], body)
    # Every candidate is compared, so that the time taken does not tell which one fits.
    fits = [_equal(expected, value) for value in given]
    if not any(fits):
        raise SignatureError("no signature fits secret, timestamp and body")


def _text(value: object, name: str) -> str:
    """Return a header's value as it is. Raises SignatureError unless it is a text."""
    if not isinstance(value, str):
        raise SignatureError(f"the {name} header is missing or not a text")
    return value


def _equal(expected: str, given: str) -> bool:
    """Compare in constant time; whatever a stranger sent is only unequal."""
    return hmac.compare_digest(
        expected.encode(), given.encode(errors="backslashreplace")
    )


def _check_age(timestamp: str, *, now: float, tolerance_s: float) -> None:
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12):
        raise SignatureError("the timestamp is not a unix time in seconds")
    if tolerance_s and abs(now - int(timestamp)) > tolerance_s:
        raise SignatureError("the timestamp is too far from now")
