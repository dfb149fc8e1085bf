"""The dialect: what the spec's tables say about sending."""

import hashlib
import hmac
from itertools import repeat

import orjson
import pytest

from webhooks_core import profiles
from webhooks_core.profiles import EventContext, PingEvent, SigningContext

PROFILE = profiles.get("recording")


@pytest.mark.spec("recording", "Up to 5 retries at about 1, 5, 15, 15 and 15 minutes")
def test_the_pauses_are_those_of_the_spec_and_at_most_a_tenth_longer():
    for attempts, pause in enumerate((60, 300, 900, 900, 900), start=1):
        delays = {
            PROFILE.retry.delay_after(attempt, retry_after=7200)
            for attempt in repeat(attempts, 50)
        }
        assert all(delay and pause <= delay <= pause * 1.1 for delay in delays)
        assert len(delays) > 1
    assert PROFILE.retry.delay_after(6) is None


@pytest.mark.spec("recording", "limits: 5 seconds, 20 failures, 5 subscriptions")
def test_the_limits_are_those_of_the_spec():
    assert PROFILE.timeout_s == pytest.approx(5)
    assert (PROFILE.disable_after, PROFILE.quota) == (20, 5)
    prefixes = (PROFILE.endpoint_prefix, PROFILE.event_prefix, PROFILE.delivery_prefix)
    assert prefixes == ("ep_", "evt_", "dlv_")


def test_the_test_event_is_the_ping_that_the_api_sends():
    assert PROFILE.ping is not None
    assert PROFILE.ping("ep_1") == PingEvent("webhook.ping", {"endpoint_id": "ep_1"})


@pytest.mark.spec("recording", "an unknown event type yields 400 bad_request")
def test_the_event_types_are_those_of_the_spec():
    assert list(PROFILE.event_types) == ["summary.completed", "webhook.ping"]


@pytest.mark.spec("recording", 'signature = "sha256=" + hex(HMAC_SHA256(…))')
@pytest.mark.spec(
    "recording", "the signed timestamp is the header's, the body its exact bytes"
)
def test_the_headers_of_an_attempt():
    body = b'{"id":"evt_1"}'
    sending = SigningContext(
        event_id="evt_1",
        event_type="summary.completed",
        delivery_id="dlv_1",
        timestamp=1_800_000_000,
        body=body,
        secrets=("whsec_new", "whsec_old"),
    )
    key, message = b"whsec_new", b"1800000000." + body
    assert PROFILE.delivery_headers(sending) == {
        "X-Recording-Event": "summary.completed",
        "X-Recording-Delivery": "dlv_1",
        "X-Recording-Timestamp": "1800000000",
        "X-Recording-Signature": "sha256="
        + hmac.new(key, message, hashlib.sha256).hexdigest(),
    }


@pytest.mark.spec("recording", "event envelope: all fields always present")
@pytest.mark.spec(
    "recording",
    "the event id is unique, with the prefix evt_",
    "the envelope's created_at is when the event was generated",
)
def test_the_envelope_has_four_fields_in_order():
    happening = EventContext(
        id="evt_1", type="t", owner="1", created_at="now", data={"a": 1}, metadata={}
    )
    assert (
        orjson.dumps(PROFILE.envelope(happening))
        == b'{"id":"evt_1","type":"t","created_at":"now","data":{"a":1}}'
    )
