"""Signatures of each scheme, made and verified with the arguments that a test has at hand."""

from collections.abc import Sequence

from webhooks_core.dispatch.signer import standard_headers
from webhooks_core.profiles import SigningContext
from webhooks_core.signing.schemes import SCHEMES, SignatureHeaders


def sha256_signature(secret: str, timestamp: int, body: bytes) -> str:
    return SCHEMES["sha256"].sign([secret], timestamp, body).signature


def timestamped_signature(secrets: Sequence[str], timestamp: int, body: bytes) -> str:
    return SCHEMES["timestamped"].sign(secrets, timestamp, body).signature


def standard_signature(
    secrets: Sequence[str], event_id: str, timestamp: int, body: bytes
) -> str:
    context = SigningContext(event_id, "", "", timestamp, body, secrets)
    return standard_headers(context)["webhook-signature"]


def verify_sha256(
    secret: str,
    *,
    timestamp: str,
    signature: str,
    body: bytes,
    now: float,
    tolerance_s: float,
) -> None:
    headers = SignatureHeaders(signature, timestamp)
    SCHEMES["sha256"].verify(
        secret, headers, body=body, now=now, tolerance_s=tolerance_s
    )


def verify_timestamped(
    secret: str, *, signature: str, body: bytes, now: float, tolerance_s: float = 300
) -> None:
    SCHEMES["timestamped"].verify(
        secret,
        SignatureHeaders(signature),
        body=body,
        now=now,
        tolerance_s=tolerance_s,
    )
