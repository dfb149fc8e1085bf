"""`events/list`, `events/subscribe`, `events/unsubscribe`: what they answer, refuse and store."""

import base64
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta

import jsonschema
import pytest
from django.utils import timezone

from recording.accounts import personal_tokens
from recording.mcp.events import challenges
from recording.mcp.events.errors import EventsError
from recording.models import EventSubscription
from recording.webhooks import EVENTS_PROFILE, SUMMARY_COMPLETED_SAMPLE
from tests.recording.mcp.conftest import initialize, store
from tests.recording.mcp.events.callback import callback, make_secret
from tests.recording.mcp.events.conftest import (
    CAPABILITIES,
    EVENT,
    EXTENSION,
    EventsClient,
    refused,
    subscribe,
)
from tests.running import PATIENCE_S
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.network import deadlines
from webhooks_core.network.deadlines import Deadline, Deadlines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR_MS = 3_600_000


def of_size(size):
    return "whsec_" + base64.b64encode(bytes(range(size))).decode()


VALID_SECRET = of_size(32)


def test_the_capability_is_named_for_both_texts(events, mcp):
    discovered = events.send("server/discover").json()["result"]
    handshake = mcp.post(initialize("2025-11-25")).json()["result"]
    for capabilities in (discovered["capabilities"], handshake["capabilities"]):
        assert capabilities["extensions"][EXTENSION] == {"listChanged": False}
        assert capabilities["events"] == {}


@pytest.mark.parametrize("method", ["poll", "stream", "replay"])
def test_a_method_that_is_not_served_is_not_found(events, method):
    assert events.refused(method)["code"] == -32601


def test_the_list_describes_the_one_event_type(events):
    result = events.do("list", cursor=None)
    assert result["resultType"] == "complete"
    [item] = result["events"]
    assert (item["name"], item["delivery"]) == (EVENT, ["webhook"])
    assert item["description"]
    assert item["inputSchema"]["additionalProperties"] is False
    for schema in (item["inputSchema"], item["payloadSchema"]):
        jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(SUMMARY_COMPLETED_SAMPLE, item["payloadSchema"])
    assert "cursor" in events.refused("list", cursor="x")["message"]


NUMBERS = [
    ("InvalidParams", -32602, -32602),
    ("NotFound", -32023, -32011),
    ("Forbidden", -32024, -32012),
    ("ResourceExhausted", -32025, -32013),
    ("Unsupported", -32026, -32014),
    ("CallbackEndpointError", -32027, -32015),
]


@pytest.mark.parametrize(("name", "code", "draft_code"), NUMBERS)
def test_each_error_has_the_numbers_of_both_texts(name, code, draft_code):
    error = EventsError(name, "why", limit="x")
    same = {"message": f"{name}: why", "data": {"limit": "x"}}
    assert error.as_dict(is_draft=False) == {"code": code} | same
    assert error.as_dict(is_draft=True) == {"code": draft_code} | same


def test_a_client_gets_the_numbers_of_the_text_that_it_declares(api, mcp):
    params = {"name": "no.such", "delivery": {"url": "https://93.184.216.34/"}}
    for is_draft, code in ((False, -32023), (True, -32011)):
        error = EventsClient(api, is_draft=is_draft).refused("unsubscribe", **params)
        assert (error["code"], error["data"]) == (code, {"kind": "event"})
        assert EVENT in error["message"]
    answer = mcp.request("events/unsubscribe", params)  # an earlier protocol
    assert answer["error"]["code"] == -32011


@pytest.mark.parametrize("capabilities", [{}, {"extensions": None}, "x", None])
def test_a_strange_declaration_of_the_client_is_no_crash(events, capabilities):
    events.meta = events.meta | {CAPABILITIES: capabilities}
    response = events.send("events/unsubscribe", name="no.such", delivery={"url": "x"})
    assert response.status_code in {200, 400}
    assert response.json()["error"]["code"] in {-32011, -32602, -32600}


def test_a_subscription_begins_with_a_challenge(events, server):
    result = subscribe(events, server)
    assert result["id"].startswith("sub_")
    assert datetime.fromisoformat(result.pop("refreshBefore")) > timezone.now()
    assert result == {
        "resultType": "complete",
        "id": result["id"],
        "cursor": None,
        "truncated": False,
    }
    [request] = server.requests
    assert [*server.asked[0]] == ["type", "challenge"]
    assert request.headers["X-MCP-Subscription-Id"] == result["id"]
    assert request.headers["webhook-id"].startswith("msg_verification_")
    row, endpoint = EventSubscription.objects.get(), Endpoint.objects.get()
    assert (row.endpoint_id, row.subscription_id) == (endpoint.pk, result["id"])
    assert (endpoint.profile, endpoint.owner) == ("mcp_events", events.api.owner)


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
def test_a_wrong_answer_to_the_challenge_subscribes_nothing(
    events, server, answer, reason
):
    server.challenge = answer
    error = refused(events, server)
    assert error["code"] == -32027
    assert error["data"] == {"reason": reason}
    assert "INTERNAL" not in str(error)
    assert not Endpoint.objects.exists()


def test_a_receiver_that_is_not_there_is_named_so(events):
    with callback() as server:
        delivery = server.delivery
    error = events.refused("subscribe", name=EVENT, delivery=delivery)
    assert error["data"] == {"reason": "connection_refused"}


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

    monkeypatch.setattr(deadlines, "Deadlines", Hasty)
    with callback(is_open=False) as server:
        error = refused(events, server)
    assert error["data"] == {"reason": "timeout"}
    assert times[0] == challenges.ANSWER_S


def with_delivery(**values):
    return {"delivery": {"mode": "webhook", "secret": VALID_SECRET, **values}}


URL = "https://93.184.216.34/"


@pytest.mark.parametrize(
    ("params", "text"),
    [
        *(
            (with_delivery(url=URL, secret=secret), "secret")
            for secret in (
                *(None, "", "whsec_", of_size(23), of_size(65), of_size(32)[6:], 5),
                *("whsec_" + "é" * 32, "whsec_" + "=" * 40, of_size(32) + "\n"),
            )
        ),
        *(
            (with_delivery(url=url), "delivery")
            for url in (
                *("http://example.com/", "https://10.0.0.1/x", "", None),
                *("https://user:pw@93.184.216.34/", URL + "x" * 2048, "http://h.:9/"),
            )
        ),
        ({"delivery": None}, "delivery"),
        ({"delivery": {}}, "delivery"),
        (with_delivery(url=URL) | {"arguments": {"label": "x"}}, "arguments"),
        (with_delivery(url=URL) | {"arguments": None}, "arguments"),
        (with_delivery(url=URL) | {"ttlMs": "1"}, "ttlMs"),
    ],
)
def test_wrong_parameters_change_nothing(events, params, text):
    error = events.refused("subscribe", name=EVENT, **params)
    assert error["code"] == -32602
    assert text in error["message"]
    secret = (params["delivery"] or {}).get("secret")
    assert not isinstance(secret, str) or len(secret) < 9 or secret not in str(error)
    assert not Endpoint.objects.exists()


def test_another_mode_is_not_supported(events, server):
    error = refused(events, server, delivery=server.delivery | {"mode": "push"})
    assert error["code"] == -32026
    assert error["data"] == {"feature": "deliveryMode", "value": "push"}


def test_a_refresh_keeps_the_subscription(events, server):
    first = subscribe(events, server)
    again = subscribe(events, server, ttlMs=HOUR_MS)
    assert len(server.asked) == 1
    assert again["id"] == first["id"]
    assert again["refreshBefore"] < first["refreshBefore"]
    assert EventSubscription.objects.count() == Endpoint.objects.count() == 1


def test_lifetimes(events, server):
    day, week = timedelta(days=1), timedelta(days=7)
    hour, second = timedelta(hours=1), timedelta(seconds=30)

    def granted(**params):
        until = subscribe(events, server, **params)["refreshBefore"]
        return datetime.fromisoformat(until) - timezone.now()

    assert day - second < granted() <= day
    assert hour - second < granted(ttlMs=HOUR_MS) <= hour
    for least in (1, 0, -5, -(2**63)):
        assert timedelta(minutes=4) < granted(ttlMs=least) <= timedelta(minutes=5)
    for most in (10**15, 2**64 - 1, None):
        assert week - second < granted(ttlMs=most) <= week


def test_a_new_secret_signs_beside_the_old_one(events, server):
    old, new = make_secret(24), make_secret(64)  # the least and the greatest size
    server.secrets.append(old)
    subscribe(events, server)
    server.secrets.append(new)
    subscribe(events, server)
    store(events.api)
    dispatch()
    assert len(server.requests[-1].headers["webhook-signature"].split()) == 2
    for secret in (old, new):
        server.secrets = [secret]
        assert server._verified(server.requests[-1])
    server.secrets = [new]
    subscribe(events, server)  # the same again rotates nothing
    assert EndpointSecret.objects.count() == 2


def test_unsubscribe(events, server, subscribed):
    store(events.api)
    key = {"name": EVENT, "delivery": {"url": server.url}}
    for wrong in ({"delivery": {"url": server.url + "x"}}, {"name": "no.such"}):
        error = events.refused("unsubscribe", **key | wrong)
        assert error["code"] == -32023
    assert events.do("unsubscribe", **key, id="sub_x")["resultType"] == "complete"
    error = events.refused("unsubscribe", **key)
    assert error["data"] == {"kind": "subscription"}
    dispatch()
    assert not server.events
    assert Endpoint.objects.get().deleted_at


def test_other_accounts_and_clients_have_subscriptions_of_their_own(
    events, server, stranger
):
    other = EventsClient(copy(events.api))
    other.api.token = personal_tokens.create(user=events.api.user, days=1).text
    theirs = EventsClient(stranger)
    ids = {subscribe(each, server)["id"] for each in (events, other, theirs)}
    assert len(ids) == len(server.asked) == 3
    theirs.do("unsubscribe", name=EVENT, delivery={"url": server.url})
    assert EventSubscription.objects.count() == 2
    store(stranger)
    store(events.api)
    dispatch()
    assert len(server.events) == 2
    assert EndpointSecret.objects.count() == 3


def test_the_quota_is_the_accounts(events, settings, monkeypatch):
    settings.MCP_EVENTS_SUBSCRIPTIONS = 1
    smaller = replace(profiles.get(EVENTS_PROFILE), quota=1)
    monkeypatch.setitem(profiles.PROFILES, EVENTS_PROFILE, smaller)
    with callback() as server, callback() as elsewhere:
        subscribe(events, server)
        error = refused(events, elsewhere)
        assert error["code"] == -32025
        assert error["data"] == {"limit": "subscriptions", "max": 1}
        assert not elsewhere.requests
        subscribe(events, server)  # a refresh
    assert events.api.create()  # the quota of webhooks is another one


def test_challenges_have_a_limit(events, server, settings):
    settings.RECORDING_RATES = settings.RECORDING_RATES | {"challenge": "1/hour"}
    server.challenge = 404, b""
    assert refused(events, server)["code"] == -32027
    error = refused(events, server)
    assert error["code"] == -32025
    assert error["data"] == {"limit": "challenges"}
    assert len(server.requests) == 1


def test_nothing_shows_the_secret(events, server, caplog, capfd):
    subscribe(events, server)
    server.statuses = [500]
    refused(events, server, delivery=server.delivery | {"mode": "x"})
    store(events.api)
    dispatch()
    key = server.secrets[0].removeprefix("whsec_")
    seen = caplog.text + "".join(capfd.readouterr())
    stored = [*Endpoint.objects.values(), *EventSubscription.objects.values()]
    assert key not in seen
    assert key not in str(stored)
