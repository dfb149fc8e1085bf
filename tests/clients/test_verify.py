"""The verifiers of clients/ accept what the engine signs, and refuse everything else."""

from __future__ import annotations

import base64
import hmac
import math
from typing import Any

import pytest

from tests.clients.verifying import LANGUAGES, Request, verdicts
from tests.docs.test_receiving_webhooks import HOSTILE_SIGNED
from tests.signatures import (
    sha256_signature,
    standard_signature,
    timestamped_signature,
)
from tests.webhooks_core.signing.test_schemes import VECTORS, body_of

NOW = 1_763_712_000
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OTHER = "whsec_w7bDpMO8"
EVENT = {"id": "evt_1", "type": "webhook.ping", "data": {"endpoint_id": "ep_é"}}
BODY = '{"id":"evt_1","type":"webhook.ping","data":{"endpoint_id":"ep_é"}}'.encode()
NO_FIT = "no signature fits secret, timestamp and body"
# What a genuine body may be that is no event.
NO_EVENT = {"the body is not JSON", "the body is not an event"}
each_language = pytest.mark.parametrize("language", LANGUAGES)


def recording(signature: str, timestamp: object = NOW) -> dict[str, Any]:
    return {"X-Recording-Timestamp": str(timestamp), "X-Recording-Signature": signature}


def gateway(signature: str) -> dict[str, Any]:
    return {"X-Gateway-Timestamp": str(NOW), "X-Gateway-Signature": signature}


def standard(signature: str, timestamp: object = NOW) -> dict[str, Any]:
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature,
    }


GENUINE = {
    "recording": recording(sha256_signature(SECRET, NOW, BODY)),
    "gateway": gateway(timestamped_signature([OTHER, SECRET], NOW, BODY)),
    "standard": standard(standard_signature([OTHER, SECRET], "evt_1", NOW, BODY)),
}
each_scheme = pytest.mark.parametrize("scheme", GENUINE)


@each_language
def test_the_golden_signatures_are_accepted(language):
    requests = list[Request]()
    for vector in VECTORS:
        body, now = body_of(vector), vector["timestamp"]
        headers = [recording(vector["sha256"], now), gateway(vector["timestamped"])]
        if "standard" in vector:
            headers.append(standard(vector["standard"], now))
        requests += [Request(vector["secret"], one, body, now) for one in headers]
    for request, verdict in zip(requests, verdicts(language, requests), strict=True):
        assert isinstance(verdict, dict) or verdict in NO_EVENT, request


@each_language
@each_scheme
def test_a_genuine_request_is_its_event(language, scheme):
    headers = GENUINE[scheme]
    lower = {name.lower(): value for name, value in headers.items()}
    accepted = [
        Request(SECRET, headers, BODY, NOW),
        Request(SECRET, lower, BODY, NOW + 300),
        Request(SECRET, lower, BODY, NOW - 300),
        Request([OTHER, SECRET], headers, BODY, NOW),
        Request(SECRET, headers, BODY, NOW + 10**6, tolerance_s=0),
    ]
    assert verdicts(language, accepted) == [EVENT] * len(accepted)


@each_language
@each_scheme
def test_a_changed_request_is_refused_with_the_reason(language, scheme):
    headers = GENUINE[scheme]
    late = "the timestamp is too far from now"
    cases = [
        (Request(SECRET, headers, BODY + b" ", NOW), NO_FIT),
        (Request("whsec_b3RoZXI=", headers, BODY, NOW), NO_FIT),
        (Request([], headers, BODY, NOW), NO_FIT),
        (Request(SECRET, headers, BODY, NOW + 301), late),
        (Request(SECRET, headers, BODY, NOW - 301), late),
        # A setting that is no number must not switch the check off.
        (Request(SECRET, headers, BODY, NOW, tolerance_s=math.nan), late),
        (Request(SECRET, {}, BODY, NOW), "the request has no signature header"),
    ]
    requests, expected = zip(*cases, strict=True)
    assert verdicts(language, requests) == list(expected)


def forged(scheme: str, secret: str) -> dict[str, Any]:
    """Return the headers of a request that is signed with a secret that anyone knows."""
    if scheme == "recording":
        return recording(sha256_signature(secret, NOW, BODY))
    if scheme == "gateway":
        return gateway(timestamped_signature([secret], NOW, BODY))
    digest = hmac.digest(b"", f"evt_1.{NOW}.".encode() + BODY, "sha256")
    return standard(f"v1,{base64.b64encode(digest).decode()}")


@each_language
@each_scheme
def test_an_empty_secret_verifies_nothing_also_beside_another(language, scheme):
    requests = [
        Request(given, headers, BODY, NOW)
        for empty in ("", " ", "whsec_", "whsec_\n")
        for given in (empty, [empty], [SECRET, empty], [empty, SECRET])
        for headers in (forged(scheme, empty), GENUINE[scheme])
    ]
    requests += [
        Request(given, GENUINE[scheme], BODY, NOW)
        for given in (None, [None], [SECRET, None])
    ]
    refused = {"a secret is empty or not a text"}
    assert set(verdicts(language, requests)) == refused


@each_language
@each_scheme
def test_each_header_that_is_hostile_is_refused(language, scheme):
    good = GENUINE[scheme]
    signed = [name for name in good if name != "X-Gateway-Timestamp"]
    # JSON carries no bytes to Node.
    hostile = [value for value in HOSTILE_SIGNED if not isinstance(value, bytes)]
    requests = [
        Request(SECRET, good | {name: value}, BODY, NOW)
        for name in signed
        for value in hostile
    ]
    requests += [
        Request(
            SECRET,
            {name: value for name, value in good.items() if name != gone},
            BODY,
            NOW,
        )
        for gone in signed
    ]
    assert all(isinstance(verdict, str) for verdict in verdicts(language, requests))


@each_language
def test_a_product_of_your_own_names_its_prefix(language):
    headers = {"X-Shop-Signature": timestamped_signature([SECRET], NOW, BODY)}
    known = Request(SECRET, headers, BODY, NOW, prefixes=["X-Shop"])
    unknown = Request(SECRET, headers, BODY, NOW)
    refused = "the request has no signature header"
    assert verdicts(language, [known, unknown]) == [EVENT, refused]
