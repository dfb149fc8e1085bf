"""Which part of a signed request differs from what was signed: secret, timestamp, body, header."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from webhooks_core.receiving.verification import Received, known_headers
from webhooks_core.signing.schemes import SignatureHeaders, SignatureScheme

NEIGHBOURS_S = 300


class Part(StrEnum):
    SECRET = "secret"  # noqa: S105 - a name
    TIMESTAMP = "timestamp"
    BODY = "body"
    HEADER = "header"


class Fault(NamedTuple):
    """A part that is not as it was signed, and how it differs; never tells a secret."""

    part: Part
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What the sender knows of the delivery: its bytes, its secrets, when it was tried."""

    body: bytes
    secrets: Sequence[str]
    seconds: Sequence[int]


@dataclass(slots=True)
class _Signed:
    """What a signature header says; `faults` tells what of its form was forgiven."""

    scheme: SignatureScheme
    timestamp: str
    signatures: list[str]
    faults: list[Fault] = field(default_factory=list)

    def blame(self, part: Part, told: str) -> None:
        if Fault(part, told) not in self.faults:
            self.faults.append(Fault(part, told))


class _Candidate(NamedTuple):
    """A value that may have been signed; `told` is empty for the value that was given."""

    value: bytes
    told: str


def diagnose(
    received: Received,
    *,
    secrets: Sequence[str],
    tolerance_s: float = 0,
    sent: Sent | None = None,
) -> list[Fault]:
    """Return every part that differs; an empty list means a genuine request.

    Tries what people and proxies do to requests on their way, alone and together. `sent` adds
    what the sender knows. `tolerance_s` is the largest accepted age, 0 for any.
    """
    signed_by = [
        it for it in received.signed_by if received.headers[it.signature_header.lower()]
    ]
    if not signed_by:
        told = f"{' or '.join(known_headers())} is missing"
        return [Fault(Part.HEADER, told)]
    readings = (_read(received, it.scheme, it.header_prefix) for it in signed_by)
    verdicts = (_judge(it, received, secrets, tolerance_s, sent) for it in readings)
    return min(verdicts, key=len)


def _judge(
    signed: _Signed,
    received: Received,
    secrets: Sequence[str],
    tolerance_s: float,
    sent: Sent | None,
) -> list[Fault]:
    if not signed.signatures or any(it.part is Part.TIMESTAMP for it in signed.faults):
        return signed.faults
    found = _search(signed, received.body, secrets, sent)
    if found is None:
        # A header that is not sound may be all there is: mend it first.
        return signed.faults or _unexplained(received, secrets, sent)
    age = received.at - int(signed.timestamp)
    if tolerance_s and abs(age) > tolerance_s:
        told = f"is {abs(age):.0f} s {'old' if age > 0 else 'ahead'}; accepted are {tolerance_s:.0f} s"
        found.append(Fault(Part.TIMESTAMP, told))
    return [*signed.faults, *found]


# ── The header ──────────────────────────────────────────────────────────────────────


def _read(received: Received, scheme: SignatureScheme, prefix: str) -> _Signed:
    given = SignatureHeaders.of(received.headers, prefix)
    value = given.signature.strip().strip("\"'")
    reading = scheme.read(given._replace(signature=value))
    signed = _Signed(scheme, reading.timestamp, reading.digests)
    if value != given.signature:
        signed.blame(Part.HEADER, "has quotes or spaces around its value")
    for told in reading.faults:
        signed.blame(Part.HEADER, told)
    _check_timestamp(signed)
    return signed


def _check_timestamp(signed: _Signed) -> None:
    text = signed.timestamp
    if not text:
        signed.blame(Part.TIMESTAMP, "is missing")
    elif not (text.isascii() and text.isdigit() and len(text) <= 15):
        signed.blame(Part.TIMESTAMP, "is not a unix time in seconds")


# ── What may have been signed ───────────────────────────────────────────────────────


def _search(
    signed: _Signed, body: bytes, secrets: Sequence[str], sent: Sent | None
) -> list[Fault] | None:
    """Return the faults of the nearest combination that fits a signature, None for no fit."""
    tried = sorted(
        product(
            _secrets(secrets, sent),
            _timestamps(signed.timestamp, sent),
            _bodies(body, sent),
        ),
        key=lambda it: sum(bool(candidate.told) for candidate in it),
    )
    near = product(
        (_Candidate(secret.encode(), "") for secret in secrets),
        _neighbours(signed.timestamp),
        [_Candidate(body, "")],
    )
    parts = (Part.SECRET, Part.TIMESTAMP, Part.BODY)
    for candidates in (*tried, *near):
        if _fits(signed, *(it.value for it in candidates)):
            pairs = zip(parts, candidates, strict=True)
            return [Fault(part, it.told) for part, it in pairs if it.told]
    return None


def _fits(signed: _Signed, secret: bytes, timestamp: bytes, body: bytes) -> bool:
    expected = signed.scheme.digest(secret, timestamp, body)
    return any(hmac.compare_digest(expected, it) for it in signed.signatures)


def _secrets(given: Sequence[str], sent: Sent | None) -> Iterator[_Candidate]:
    for secret in given:
        bare = secret.strip()
        yield _Candidate(secret.encode(), "")
        if bare != secret:
            yield _Candidate(bare.encode(), "has white space around it")
        if not bare.startswith("whsec_"):
            yield _Candidate(
                b"whsec_" + bare.encode(),
                "lacks whsec_: the key is the whole string, prefix included",
            )
    for secret in sent.secrets if sent else ():
        yield _Candidate(
            secret.encode(), "is not the endpoint's: take it from there, or rotate it"
        )


def _timestamps(given: str, sent: Sent | None) -> Iterator[_Candidate]:
    yield _Candidate(given.encode(), "")
    seconds = str(int(given) // 1000)
    if len(given) > 10:
        yield _Candidate(
            seconds.encode(), "is in milliseconds; it was signed in seconds"
        )
    for second in sorted(set(sent.seconds if sent else ())):
        if str(second) != given:
            yield _Candidate(
                str(second).encode(),
                f"is {given}; this delivery was signed at {second}",
            )


def _neighbours(given: str) -> Iterator[_Candidate]:
    for off in range(1, NEIGHBOURS_S + 1):
        for second in (int(given) - off, int(given) + off):
            yield _Candidate(
                str(second).encode(), f"is {given}; it was signed as {second}"
            )


def _bodies(given: bytes, sent: Sent | None) -> Iterator[_Candidate]:
    yield _Candidate(given, "")
    if sent and sent.body != given:
        yield _Candidate(sent.body, _difference(given, sent.body))
        return
    changed = {
        "has line breaks or spaces at its end that were not sent": given.rstrip(),
        "lacks the line break at its end": given + b"\n",
        "starts with a byte order mark": given.removeprefix(b"\xef\xbb\xbf"),
        "has other line breaks than were sent": given.replace(b"\r\n", b"\n"),
        **_rewritten(given),
    }
    for told, body in changed.items():
        if body != given:
            yield _Candidate(body, told)


def _rewritten(given: bytes) -> dict[str, bytes]:
    """Return the body as a sender writes JSON: what a receiver parsed and wrote anew."""
    told = "was parsed and written again: verify the bytes as they came"
    try:
        value = json.loads(given)
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return {}
    return {told: compact}


def _difference(given: bytes, sent: bytes) -> str:
    pairs = enumerate(zip(given, sent, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(given), len(sent)))
    return f"has {len(given)} bytes, {len(sent)} were sent; they differ from byte {at + 1} on"


def _unexplained(
    received: Received, secrets: Sequence[str], sent: Sent | None
) -> list[Fault]:
    """Name the parts that are left when nothing fits."""
    if sent is None:
        return [
            Fault(Part.SECRET, "may be another one than it was signed with, or"),
            Fault(
                Part.BODY, "was changed on its way: name the delivery to be told which"
            ),
        ]
    faults = []
    if secrets and not set(secrets) & set(sent.secrets):
        faults.append(Fault(Part.SECRET, "is not the endpoint's"))
    if received.body != sent.body:
        faults.append(Fault(Part.BODY, _difference(received.body, sent.body)))
    told = (
        "fits neither the endpoint's secrets nor the times of this delivery's attempts"
    )
    return [*faults, Fault(Part.HEADER, told)]
