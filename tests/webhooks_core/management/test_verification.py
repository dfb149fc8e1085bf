"""What a receiver reads in a request, and whether its signature is genuine."""

from collections.abc import Sequence

import pytest

from tests.signatures import sha256_signature, timestamped_signature
from webhooks_core.management.receiver import Received, verify

SECRET = "whsec_c2VjcmV0"
BODY = b'{"id":"evt_1","type":"summary.completed","data":{"title":"\xc3\x84rger"}}'
AT = 1_000


def named(product: str, event: str, signature: str) -> dict[str, str]:
    parts = {"event": event, "delivery": "dlv_1", "signature": signature}
    return {f"x-{product}-{name}": value for name, value in parts.items()}


SHA256 = sha256_signature(SECRET, AT, BODY)
TIMESTAMPED = timestamped_signature([SECRET], AT, BODY)
SIGNED = {
    "recording": named("recording", "summary.completed", SHA256)
    | {"x-recording-timestamp": str(AT)},
    "gateway": named("gateway", "ingest.completed", TIMESTAMPED),
    "shop": named("shop", "sold", TIMESTAMPED),
    "": {},
}


def received(
    product: str = "", *, body: bytes = BODY, at: float = AT, **changed: str
) -> Received:
    """Return the request of a product, with some of its headers changed."""
    headers = {f"x-{product}-{name}": value for name, value in changed.items()}
    return Received(SIGNED[product] | headers, body, at)


def names(message: Received) -> tuple[str, str, str]:
    return message.event_type, message.event_id, message.delivery_id


@pytest.mark.parametrize(
    ("message", "secrets", "verified", "words"),
    [
        (received("recording"), [SECRET], True, "recording signature verified"),
        (received("gateway"), [SECRET], True, "gateway signature verified"),
        (received("shop"), [SECRET], True, "shop signature verified"),
        (received("gateway"), ["x"], False, "no signature fits"),
        (received("recording"), ["x", SECRET], True, "verified"),
        (received("recording"), [], None, "not checked"),
        (received("recording"), ["x"], False, "no signature fits"),
        (received("recording", body=b"{}"), [SECRET], False, "no signature fits"),
        (received("recording", at=1_301), [SECRET], False, "too far from now"),
        (received("gateway", at=1_301), [SECRET], False, "too far from now"),
        (received("recording", timestamp=""), [SECRET], False, "not a unix time"),
        (received("recording", signature="00"), [SECRET], False, "is not sha256="),
        (received("gateway", signature="v1=00"), [SECRET], False, "is not t="),
        (received(), [SECRET], False, "not signed: no X-"),
        (received(), [SECRET], False, "X-Shop-Signature"),
    ],
)
@pytest.mark.usefixtures("shop")
def test_the_verification_says_which_part_of_a_signature_fails(
    message: Received, secrets: Sequence[str], verified: bool | None, words: str
):
    verification = verify(message, secrets=secrets, tolerance_s=300)
    assert verification.is_verified is verified
    assert words in verification.message


@pytest.mark.usefixtures("shop")
def test_names_come_from_the_headers_and_the_body():
    assert names(received("recording")) == ("summary.completed", "evt_1", "dlv_1")
    assert names(received("shop")) == ("sold", "evt_1", "dlv_1")
    assert names(received()) == ("summary.completed", "evt_1", "")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b"1", b"\xff", b'{"id":1}'])
def test_a_body_that_is_no_envelope_has_no_names(body):
    assert names(received(body=body)) == ("", "", "")
