"""Both signature schemes, against vectors that another program made, and against forgers."""

import base64
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import webhooks_core
from tests.signatures import (
    sha256_signature,
    standard_signature,
    timestamped_signature,
    verify_sha256,
    verify_timestamped,
)
from webhooks_core.signing.schemes import (
    SCHEMES,
    SignatureError,
    SignatureHeaders,
    is_empty,
    standard_key,
)

NOW = 1_763_712_000
SECRET, OTHER = "whsec_one", "whsec_two"
BODY = b'{"id":"evt_1"}'
GOLDEN = Path(__file__).parent / "golden" / "signatures.json"
VECTORS = json.loads(GOLDEN.read_text(encoding="utf-8"))["vectors"]


def body_of(vector: dict[str, Any]) -> bytes:
    body = vector["body"]
    if "base64" in body:
        return base64.b64decode(body["base64"])
    return str(body["repeat"]).encode() * int(body["times"])


golden = pytest.mark.parametrize(
    "vector", VECTORS, ids=lambda vector: str(vector["name"])
)


def test_a_profile_picks_its_scheme_from_the_table(plain):
    with pytest.raises(ValueError, match="'md5' is unknown; known are sha256, "):
        replace(plain, signature_scheme="md5")


def test_the_engine_names_no_product():
    folder = Path(webhooks_core.__file__).parent
    named = re.compile(r"\b(recording|gateway|catalog)s?\b", re.IGNORECASE)
    suffixes = {".py", ".html", ".css", ".js"}
    files = [file for file in folder.rglob("*") if file.suffix in suffixes]
    faults = [
        f"{path.name}: {line}"
        for path in files
        for line in path.read_text().splitlines()
        if named.search(line)
    ]
    assert len(files) > 50
    assert faults == []


@pytest.mark.spec("recording", 'signature = "sha256=" + hex(HMAC_SHA256(…))')
@pytest.mark.spec("gateway", "Header X-Gateway-Signature: t=<unix_ts>,v1=<hex>")
@golden
def test_signatures_are_those_of_another_program(vector):
    secret, at, body = vector["secret"], vector["timestamp"], body_of(vector)
    assert sha256_signature(secret, at, body) == vector["sha256"]
    assert timestamped_signature([secret], at, body) == vector["timestamped"]
    for name, scheme in SCHEMES.items():
        headers = SignatureHeaders(vector[name], str(at))
        scheme.verify(secret, headers, body=body, now=at, tolerance_s=1)


@golden
def test_standard_signatures_are_those_of_another_program(vector):
    if "standard" not in vector:
        with pytest.raises(ValueError, match="whsec_"):
            standard_key(vector["secret"])
        return
    signature = standard_signature(
        [vector["secret"]], "evt_1", vector["timestamp"], body_of(vector)
    )
    assert signature == vector["standard"]


def sha256_check(secret: str = SECRET, **changes: Any) -> None:
    facts: dict[str, Any] = {"timestamp": str(NOW), "body": BODY, "now": NOW}
    facts |= {"signature": sha256_signature(SECRET, NOW, BODY), "tolerance_s": 300}
    verify_sha256(secret, **(facts | changes))


def timestamped_check(signature: Any, secret: str = SECRET, **changes: Any) -> None:
    facts: dict[str, Any] = {"body": BODY, "now": NOW} | changes
    verify_timestamped(secret, signature=signature, **facts)


DIGEST = sha256_signature(SECRET, NOW, BODY).removeprefix("sha256=")
T, V1 = f"t={NOW}", f"v1={DIGEST}"


@pytest.mark.parametrize(
    ("_case", "changes"),
    [
        ("another time", {"timestamp": str(NOW + 1)}),
        ("the same time written otherwise", {"timestamp": f"0{NOW}"}),
        ("half a surrogate pair", {"signature": "sha256=" + "\udc80" * 64}),
        ("spaces around the time", {"timestamp": f" {NOW} "}),
        ("a time just too old", {"now": NOW + 301}),
        ("a time just too far ahead", {"now": NOW - 301}),
        ("a tolerance that is no number", {"tolerance_s": math.nan}),
    ],
)
@pytest.mark.spec("recording", "the verifier rejects an old timestamp")
def test_a_sha256_signature_does_not_hold_with(_case, changes):
    """What the table for all verifiers (tests/docs/test_verifiers.py) does not try."""
    with pytest.raises(SignatureError):
        sha256_check(**changes)


@pytest.mark.parametrize("secret", ["", " ", "whsec_", "whsec_\n"])
@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
def test_an_empty_secret_fits_nothing(scheme, secret):
    headers = scheme.sign([secret], NOW, BODY)
    with pytest.raises(SignatureError, match="the secret is empty"):
        scheme.verify(secret, headers, body=BODY, now=NOW)
    with pytest.raises(ValueError, match=r"is empty|does not start with whsec_"):
        standard_key(secret)


@pytest.mark.parametrize("now", [NOW, NOW + 300, NOW - 300, NOW + 299.9])
def test_a_signature_holds_within_the_tolerance(now):
    sha256_check(now=now)
    timestamped_check(f"{T},{V1}", now=now)


@pytest.mark.spec("gateway", "tolerance in seconds; 0 skips the freshness check")
@pytest.mark.parametrize("now", [0, NOW + 10**9])
def test_tolerance_0_skips_the_freshness_check_of_both(now):
    sha256_check(now=now, tolerance_s=0)
    timestamped_check(f"{T},{V1}", now=now, tolerance_s=0)


@pytest.mark.parametrize(
    "signature",
    [f"{T},t={NOW + 1},{V1}", f"t={NOW + 1},{V1}", f"{T},V1={DIGEST}", f"{T};{V1}"],
)
def test_a_timestamped_signature_does_not_hold_as(signature):
    with pytest.raises(SignatureError):
        timestamped_check(signature)


@pytest.mark.spec("gateway", "rejects deliveries outside the window")
@pytest.mark.parametrize("now", [NOW + 301, NOW - 301])
def test_a_timestamped_signature_ages(now):
    with pytest.raises(SignatureError, match="too far from now"):
        timestamped_check(f"{T},{V1}", now=now)


@pytest.mark.parametrize(
    ("_case", "signature"),
    [
        ("as it is sent", f"{T},{V1}"),
        ("the other way round", f"{V1},{T}"),
        ("a space after the comma", f"{T}, {V1}"),
        ("the right one of two first", f"{T},{V1},v1={'0' * 64}"),
        ("the right one of two last", f"{T},v1={'0' * 64},{V1}"),
        ("a wrong one that is no hex", f"{T},v1=é,{V1}"),
        ("versions of the future beside it", f"{T},v2=abc,{V1},x"),
    ],
)
def test_a_timestamped_signature_holds_with(_case, signature):
    timestamped_check(signature)


def test_each_secret_of_a_rotation_verifies():
    signature = timestamped_signature([SECRET, OTHER], NOW, BODY)
    assert signature.count("v1=") == 2
    for secret in (SECRET, OTHER):
        timestamped_check(signature, secret)
    with pytest.raises(SignatureError):
        timestamped_check(signature, "whsec_three")


@given(
    secret=st.text().filter(lambda secret: not is_empty(secret)),
    timestamp=st.integers(0, 10**12 - 1),
    body=st.binary(),
)
def test_what_is_signed_verifies_and_one_changed_byte_does_not(secret, timestamp, body):
    secret = secret.encode(errors="replace").decode()
    signature = timestamped_signature([secret], timestamp, body)
    timestamped_check(signature, secret, body=body, now=timestamp, tolerance_s=1)
    with pytest.raises(SignatureError):
        timestamped_check(signature, secret, body=body + b"\0", now=timestamp)


@given(signature=st.text(), body=st.binary(max_size=8))
def test_arbitrary_headers_are_refused_without_another_error(signature, body):
    with pytest.raises(SignatureError):
        timestamped_check(signature, body=body)
    with pytest.raises(SignatureError):
        sha256_check(timestamp=signature, signature=signature, body=body, tolerance_s=0)


@pytest.mark.parametrize(
    "value", [None, b"t=1,v1=x", 1, 1.5, True, ["t=1"], {}, object()]
)
def test_a_value_that_is_not_a_text_is_refused_like_any_other_signature(value):
    refused = pytest.raises(SignatureError, match="missing or not a text")
    with refused:
        timestamped_check(value)
    for changes in ({"timestamp": value}, {"signature": value}):
        with refused:
            sha256_check(tolerance_s=0, **changes)
