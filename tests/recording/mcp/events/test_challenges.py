"""What events/subscribe asks of a receiver, and what it refuses."""

from __future__ import annotations

import base64

import pytest

from recording.mcp.events import challenges
from recording.models import EventSubscription
from tests.recording.mcp.events.callback import callback, make_secret
from tests.recording.mcp.events.conftest import EVENT, refused, subscribe
from tests.running import PATIENCE_S
from webhooks_core.models import Endpoint
from webhooks_core.network.deadlines import Deadline, Deadlines

pytestmark = pytest.mark.django_db(transaction=True)


def of_size(size):
    """Return the same secret each time, as the names of tests must be."""
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


@pytest.mark.spec(
    "mcp-events",
    "id is derived from principal, url, name and arguments, and stable",
    "the endpoint echoes the challenge before anything is delivered",
    "the challenge is signed and headed like a delivery",
)
def test_a_subscription_begins_with_a_challenge(events):
    with callback() as server:
        result = subscribe(events, server)
    assert set(result) == {"resultType", "id", "refreshBefore", "cursor", "truncated"}
    assert result["id"].startswith("sub_")
    assert (result["resultType"], result["truncated"]) == ("complete", False)
    [request] = server.requests
    assert [*server.asked[0]] == ["type", "challenge"]
    assert request.headers["X-MCP-Subscription-Id"] == result["id"]
    assert request.headers["webhook-id"].startswith("msg_verification_")
    row, endpoint = EventSubscription.objects.get(), Endpoint.objects.get()
    assert (row.endpoint_id, row.subscription_id) == (endpoint.pk, result["id"])
    assert (endpoint.profile, endpoint.owner) == ("mcp_events", events.api.owner)


@pytest.mark.spec(
    "mcp-events",
    "delivery.secret: whsec_ and 24 to 64 bytes, else InvalidParams",
)
@pytest.mark.parametrize(
    "secret",
    [
        None,
        "",
        "whsec_",
        of_size(23),
        of_size(65),
        of_size(32)[6:],
        "whsec_" + "é" * 32,
        "whsec_" + "=" * 40,
        of_size(32) + "\n",
        5,
    ],
)
def test_a_secret_of_another_form_is_refused(events, secret):
    with callback() as server:
        delivery = server.delivery | {"secret": secret}
        if secret is None:
            del delivery["secret"]
        error = refused(events, server, delivery=delivery)
    assert error["code"] == -32602
    assert "secret" in error["message"]
    assert not isinstance(secret, str) or len(secret) < 9 or secret not in str(error)
    assert not server.requests
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize("size", [24, 32, 64])
def test_secrets_of_the_allowed_sizes(events, size):
    with callback() as server:
        server.secrets = [make_secret(size)]
        assert subscribe(events, server)["id"]


@pytest.mark.spec(
    "mcp-events",
    "a callback that is not https is InvalidParams",
    "callback URLs that lead to addresses that are not public are refused",
)
@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "https://10.0.0.1/x",
        "https://user:pw@93.184.216.34/",
        "",
        "https://93.184.216.34/" + "x" * 2048,
        "http://localhost.:9/",
    ],
)
def test_urls_that_are_refused(events, url):
    delivery = {"mode": "webhook", "url": url, "secret": make_secret()}
    error = events.refused("subscribe", name=EVENT, delivery=delivery)
    assert error["code"] == -32602
    assert "delivery" in error["message"]
    assert not Endpoint.objects.exists()


@pytest.mark.spec(
    "mcp-events",
    "CallbackEndpointError names a category, never the endpoint's words",
)
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, b'{"challenge": "another"}'), "challenge_failed"),
        ((200, b'{"challenge": 5}'), "challenge_failed"),
        ((200, b"not json INTERNAL"), "challenge_failed"),
        ((200, b"[]"), "challenge_failed"),
        ((200, b'{"challenge": "\xff"}'), "challenge_failed"),
        ((200, b"x" * 100_000), "challenge_failed"),
        ((302, b"INTERNAL"), "challenge_failed"),
        ((404, b"INTERNAL"), "http_4xx"),
        ((503, b"INTERNAL"), "http_5xx"),
    ],
)
def test_a_wrong_answer_to_the_challenge_subscribes_nothing(events, answer, reason):
    with callback() as server:
        server.challenge = answer
        error = refused(events, server)
    assert error["code"] == -32027
    assert error["data"] == {"reason": reason}
    assert "INTERNAL" not in str(error)
    assert not EventSubscription.objects.exists()
    assert not Endpoint.objects.exists()


def test_a_receiver_that_is_not_there_is_named_so(events):
    with callback() as server:
        delivery = server.delivery
    error = events.refused("subscribe", name=EVENT, delivery=delivery)
    assert error["data"] == {"reason": "connection_refused"}


def test_a_receiver_that_does_not_know_the_secret_is_not_subscribed(events):
    with callback() as server:
        delivery = server.delivery | {"secret": make_secret()}
        error = refused(events, server, delivery=delivery)
    assert error["data"] == {"reason": "http_4xx"}


def test_a_receiver_that_is_slow_is_not_waited_for(events, monkeypatch):
    times = []

    class Hasty(Deadlines):
        """The time for an answer is over as soon as the receiver has the request."""

        def within(self, seconds: float) -> Deadline:
            times.append(seconds)
            return super().within(seconds)

        def _tick(self) -> None:
            for deadline in self._open if server.open else ():
                deadline.until -= PATIENCE_S
            super()._tick()

    monkeypatch.setattr(challenges, "Deadlines", Hasty)
    with callback(is_open=False) as server:
        error = refused(events, server)
    assert error["data"] == {"reason": "timeout"}
    assert times == [challenges.ANSWER_S]


def test_a_callback_of_the_settings_is_not_asked(events, settings):
    with callback() as server:
        settings.MCP_EVENTS_CALLBACKS = [server.url[:-4]]
        assert subscribe(events, server)["id"]
        assert not server.requests


@pytest.mark.parametrize(
    ("prefix", "trusted"),
    [
        ("https://app.example", True),
        ("https://app.example/", True),
        ("https://app.example/ho", True),
        ("https://app.exam", False),
        ("https://app", False),
        ("https://app.example/other", False),
    ],
)
def test_a_prefix_trusts_no_host_that_only_begins_like_its_own(
    settings, prefix, trusted
):
    settings.MCP_EVENTS_CALLBACKS = (prefix,)
    assert challenges.is_trusted("https://app.example/hook") is trusted
