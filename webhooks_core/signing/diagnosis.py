"""Why a request does not verify: which of header, timestamp, secret and body differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Generic, NamedTuple, TypeVar

from webhooks_core.profiles import WebhookProfile
from webhooks_core.signing.schemes import (
    PREFIX,
    SignatureError,
    SignatureHeaders,
    is_empty,
    is_unix_time,
)
from webhooks_core.signing.verification import Received, known_headers

T = TypeVar("T")
REWRITTEN = "was parsed and written again: verify the bytes as they came"


class Part(StrEnum):
    SECRET = "secret"  # noqa: S105 - a name
    TIMESTAMP = "timestamp"
    BODY = "body"
    HEADER = "header"


class Fault(NamedTuple):
    """A part that is not as it was signed, and how it differs; never holds a secret."""

    part: Part
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The sender's data of a delivery: its bytes, its secrets, the times of its attempts."""

    body: bytes
    secrets: Sequence[str]
    seconds: Sequence[int]


class _Candidate(NamedTuple, Generic[T]):
    """A value that may have been signed; `fault` is empty for the received value."""

    value: T
    fault: str = ""


def diagnose(
    received: Received,
    *,
    secrets: Sequence[str],
    tolerance_s: float = 0,
    sent: Sent | None = None,
) -> list[Fault]:
    """Return every part that differs; an empty list means a genuine request.

    An empty secret is a fault, also beside one that fits.
    `sent` adds what the sender knows. `tolerance_s` is the largest accepted age, 0 for any.
    """
    if any(map(is_empty, secrets)):
        return [Fault(Part.SECRET, "is empty")]
    diagnoses = [
        _diagnose(received, profile, secrets, tolerance_s, sent)
        for profile in received.signed_by
        if received.headers[profile.signature_header.lower()]
    ]
    missing = Fault(Part.HEADER, f"{' or '.join(known_headers())} is missing")
    return min(diagnoses, key=len, default=[missing])


def _diagnose(
    received: Received,
    profile: WebhookProfile,
    secrets: Sequence[str],
    tolerance_s: float,
    sent: Sent | None,
) -> list[Fault]:
    headers = SignatureHeaders.of(received.headers, profile.header_prefix)
    try:
        timestamp, digests = profile.scheme.parse(headers)
    except SignatureError as error:
        return [Fault(Part.HEADER, str(error))]
    if not is_unix_time(timestamp):
        return [Fault(Part.TIMESTAMP, "is not a unix time in seconds")]
    for candidates in _combinations(received, timestamp, secrets, sent):
        secret, signed_at, body = candidates
        if profile.scheme.fits(secret.value, signed_at.value, body.value, digests):
            faults = _faults(candidates)
            break
    else:
        return _unexplained(received, secrets, sent)
    age = received.at - int(timestamp)
    if tolerance_s and abs(age) > tolerance_s:
        distance = f"{abs(age):.0f} s {'old' if age > 0 else 'ahead'}"
        message = f"is {distance}; accepted are {tolerance_s:.0f} s"
        faults.append(Fault(Part.TIMESTAMP, message))
    return faults


Candidates = tuple[_Candidate[str], _Candidate[str], _Candidate[bytes]]


def _combinations(
    received: Received, timestamp: str, secrets: Sequence[str], sent: Sent | None
) -> list[Candidates]:
    """Return what may have been signed, the fewest faults first."""
    return sorted(
        product(
            _secrets(secrets, sent),
            _timestamps(timestamp, sent),
            _bodies(received.body, sent),
        ),
        key=lambda candidates: len(_faults(candidates)),
    )


def _faults(candidates: Candidates) -> list[Fault]:
    parts = zip((Part.SECRET, Part.TIMESTAMP, Part.BODY), candidates, strict=True)
    return [Fault(part, fault) for part, (_, fault) in parts if fault]


def _secrets(given: Sequence[str], sent: Sent | None) -> Iterator[_Candidate[str]]:
    for secret in given:
        bare = secret.strip()
        yield _Candidate(secret)
        if bare != secret:
            yield _Candidate(bare, "has white space around it")
        if not bare.startswith(PREFIX):
            fault = f"lacks {PREFIX}: the key is the whole string, prefix included"
            yield _Candidate(PREFIX + bare, fault)
    for secret in sent.secrets if sent else ():
        fault = "is not the endpoint's: take it from there, or rotate it"
        yield _Candidate(secret, fault)


def _timestamps(given: str, sent: Sent | None) -> Iterator[_Candidate[str]]:
    yield _Candidate(given)
    for second in map(str, sorted(set(sent.seconds if sent else ()))):
        if second != given:
            fault = f"is {given}; this delivery was signed at {second}"
            yield _Candidate(second, fault)


def _bodies(given: bytes, sent: Sent | None) -> Iterator[_Candidate[bytes]]:
    yield _Candidate(given)
    if sent and sent.body != given:
        yield _Candidate(sent.body, _difference(given, sent.body))
    elif sent is None:
        for body in (given.rstrip(), given + b"\n"):
            yield _Candidate(body, "has other white space at its end than was sent")
        yield from _rewritten(given)


def _rewritten(given: bytes) -> Iterator[_Candidate[bytes]]:
    """Yield the body as a sender writes JSON: a receiver may have parsed and written it again."""
    try:
        value = json.loads(given)
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return
    yield _Candidate(compact, REWRITTEN)


def _difference(given: bytes, sent: bytes) -> str:
    pairs = enumerate(zip(given, sent, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(given), len(sent)))
    text = f"has {len(given)} bytes, {len(sent)} were sent; they differ from byte {at + 1} on"
    return f"{text}; it {REWRITTEN}" if _is_same_json(given, sent) else text


def _is_same_json(one: bytes, other: bytes) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def _unexplained(
    received: Received, secrets: Sequence[str], sent: Sent | None
) -> list[Fault]:
    """Return the faults that remain possible when no candidates fit."""
    if sent is None:
        hint = "may have changed on its way (webhooks_verify --delivery ID shows which)"
        return [
            Fault(Part.SECRET, "may not be the one that signed the request, or"),
            Fault(Part.BODY, hint),
        ]
    faults = []
    if secrets and not set(secrets) & set(sent.secrets):
        faults.append(Fault(Part.SECRET, "is not the endpoint's"))
    if received.body != sent.body:
        faults.append(Fault(Part.BODY, _difference(received.body, sent.body)))
    message = "fits neither the endpoint's secrets nor the times of its attempts"
    return [*faults, Fault(Part.HEADER, message)]
