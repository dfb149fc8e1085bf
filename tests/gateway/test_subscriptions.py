"""The management API: every operation. Wrong inputs are in the golden contract."""

import re
from typing import Any

import pytest

from gateway import keys
from gateway.event_types import EVENT_TYPES
from gateway.identity import SCOPES
from tests.gateway.client import PATH, Api
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.secrets import MASK
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db

URL, OWN = "http://127.0.0.1:9/hook", "http://localhost:8000/"


@pytest.mark.spec("gateway", "POST /v1/webhooks/subscriptions: create")
@pytest.mark.spec(
    "gateway",
    "subscription id: a fixed whsub_ prefix",
    "secret: generated if not supplied, in full once",
)
def test_create_returns_the_subscription_with_the_full_secret(acme):
    response = acme.call(
        "POST", PATH, {"url": URL, "event_types": ["ingest.completed"]}
    )
    body, row = response.json(), Endpoint.objects.get()
    times = iso(row.created_at), iso(row.updated_at)
    assert (body["created_at"], body["updated_at"]) == times
    assert body["id"] == row.public_id
    assert re.fullmatch(r"whsub_[0-9a-v]{26}", body["id"])
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", body["secret"])
    assert (row.profile, row.owner) == ("gateway", "acme")


@pytest.mark.spec("gateway", "secret: masked on every later read")
@pytest.mark.parametrize("secret", [None, "x", "s" * 256])
def test_the_secret_is_masked_alike_on_every_later_read(acme, secret):
    subscription = acme.create(secret=secret)
    assert subscription["secret"] != MASK
    assert secret is None or subscription["secret"] == secret
    answers = [
        acme.get(f"/{subscription['id']}"),
        acme.get()["items"][0],
        acme.patch(subscription, description="new"),
        acme.patch(subscription),
    ]
    assert {item["secret"] for item in answers} == {"whsec_" + "•" * 8}


@pytest.mark.spec("gateway", "PATCH: url, event types, description, active toggle")
@pytest.mark.spec("gateway", "GET /v1/webhooks/subscriptions/{id}: describe one")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", f"{URL}/other"),
        ("event_types", ["eval.regression"]),
        ("event_types", []),
        ("description", "new"),
        ("description", ""),
        ("active", False),
        ("unknown", 1),
    ],
)
def test_patch_changes_exactly_what_is_given(acme, field, value):
    subscription = acme.create(event_types=["ingest.completed"], description="old")
    changed = acme.patch(subscription, **{field: value})
    rest: dict[str, Any] = {"secret": MASK}
    if field in subscription:
        assert changed["updated_at"] > subscription["updated_at"]
        rest |= {field: value, "updated_at": changed["updated_at"]}
    assert changed == subscription | rest
    assert acme.get(f"/{subscription['id']}") == changed


@pytest.mark.spec("gateway", "DELETE /v1/webhooks/subscriptions/{id}")
def test_a_deletion_answers_204(acme):
    subscription = acme.create()
    response = acme.call("DELETE", f"{PATH}/{subscription['id']}")
    assert (response.status_code, response.content) == (204, b"")
    assert "Content-Type" not in response
    acme.get(f"/{subscription['id']}", 404)


@pytest.mark.spec("gateway", "The create throttle counts successful creates")
def test_the_create_throttle_counts_what_was_created(settings):
    """Subscriptions, keys and portal links, not what was refused."""
    settings.GATEWAY_RATES = dict.fromkeys(settings.GATEWAY_RATES, "")
    settings.GATEWAY_RATES["create"] = "3/hour"
    key = keys.create(tenant="acme", principal="ada", scopes=SCOPES)
    acme = Api(key=key.text)
    creations: tuple[tuple[str, Any, Any], ...] = (
        (PATH, {"url": URL}, {"url": OWN}),
        ("/v1/keys", {}, {"scopes": []}),
        ("/v1/portal", {"capabilities": ["view"]}, {"capabilities": []}),
    )
    for path, accepted, refused in creations:
        for body in (refused, b"{"):
            assert acme.call("POST", path, body).status_code == 400
        assert acme.call("POST", path, accepted).status_code == 201
    for path, accepted, _ in creations:
        assert acme.call("POST", path, accepted).status_code == 429
    assert Endpoint.objects.count() == 1


def test_a_longer_secret_is_asked_for_where_the_setting_says_so(acme, settings):
    settings.GATEWAY_MIN_SECRET_LENGTH = 16
    response = acme.call("POST", PATH, {"url": URL, "secret": "x" * 15})
    assert "16 to 256" in response.json()["detail"]
    acme.create(secret="x" * 16)


# ── Filters: written, shown, and obeyed when an event is published ────────────────────


ABOVE = {"data": {"value": {"$gt": 0.5}}}


def publish(acme, value: float) -> list[str]:
    data = dict(EVENT_TYPES["drift.detected"].sample) | {"value": value}
    response = acme.publish({"type": "drift.detected", "data": data})
    assert response.status_code == 202, response.content
    ids: list[str] = response.json()["subscriptions"]
    return ids


def test_a_filter_is_written_shown_changed_and_removed(acme):
    subscription = acme.create(filter=ABOVE)
    assert list(subscription)[-1] == "filter"
    assert subscription["filter"] == ABOVE
    assert acme.get(f"/{subscription['id']}")["filter"] == ABOVE
    other = {"principal_id": "ada"}
    assert acme.patch(subscription, filter=other)["filter"] == other
    assert acme.patch(subscription, description="x")["filter"] == other
    nothings: list[Any] = [{}, None]
    for nothing in nothings:
        acme.patch(subscription, filter=other)
        assert acme.patch(subscription, filter=nothing)["filter"] is None
    assert acme.create()["filter"] is None


def test_an_event_goes_to_the_subscriptions_whose_filter_matches(acme):
    everything = acme.create()
    above = acme.create(filter=ABOVE)
    acme.create(filter={"principal_id": "bob"})
    of_ada = acme.create(filter={"principal_id": "ada", "tenant_id": "acme"})
    assert publish(acme, 0.9) == [everything["id"], above["id"], of_ada["id"]]
    assert publish(acme, 0.1) == [everything["id"], of_ada["id"]]
    assert Delivery.objects.count() == 5


def test_a_test_event_passes_any_filter(acme):
    subscription = acme.create(filter=ABOVE)
    assert acme.test(subscription).status_code == 202
    assert Delivery.objects.count() == 1
