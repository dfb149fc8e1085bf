"""Tenants see and change nothing of each other, and strangers nothing at all."""

from __future__ import annotations

import pytest

from gateway import keys
from tests.gateway.client import PATH, Api
from webhooks_core.secrets import MASK

pytestmark = pytest.mark.django_db

ABSENT = "whsub_" + "0" * 26

OPERATIONS = [
    ("GET", "", None),
    ("PATCH", "", {"description": "stolen"}),
    ("DELETE", "", None),
    ("POST", "/test", None),
    ("GET", "/deliveries", None),
]


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
def test_another_tenants_subscription_is_404_and_stays_as_it_is(
    acme, globex, method, path, body
):
    subscription = acme.create()
    response = globex.call(method, f"{PATH}/{subscription['id']}{path}", body)
    assert response.status_code == 404
    absent = globex.call(method, f"{PATH}/{ABSENT}{path}", body)
    assert (absent.status_code, absent.content) == (404, response.content)
    assert acme.get(f"/{subscription['id']}") == subscription | {"secret": MASK}
    assert acme.deliveries(subscription) == []
    assert globex.get() == {"items": []}


def test_every_principal_of_a_tenant_sees_its_subscriptions(acme):
    subscription = acme.create()
    other = Api(tenant="acme", principal="ben")
    assert other.get(f"/{subscription['id']}")["id"] == subscription["id"]


@pytest.mark.parametrize(
    "odd", ["nonsense", "ep_" + "0" * 26, "whsub_é", "%00", "a" * 999]
)
@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
def test_an_id_that_cannot_be_is_404(acme, odd, method, path, body):
    response = acme.call(method, f"{PATH}/{odd}{path}", body)
    assert response.status_code == 404
    assert response.json() == {"detail": "There is no such subscription."}


@pytest.mark.parametrize(("method", "path", "body"), [("POST", None, {}), *OPERATIONS])
def test_without_identity_everything_is_401(acme, method, path, body):
    subscription = acme.create()
    address = PATH if path is None else f"{PATH}/{subscription['id']}{path}"
    response = Api(key="nonsense").call(method, address, body)
    assert (response.status_code, list(response.json())) == (401, ["detail"])
    assert response["WWW-Authenticate"].startswith("Bearer ")
    assert acme.get(f"/{subscription['id']}") == subscription | {"secret": MASK}


def test_a_gateway_key_opens_its_tenant_alone(acme, globex):
    mine, theirs = acme.create(), globex.create()
    api = Api(key=keys.create(tenant="acme", principal="robot").text)
    assert [item["id"] for item in api.get()["items"]] == [mine["id"]]
    api.get(f"/{theirs['id']}", 404)


def test_a_forwarded_request_from_loopback_is_not_believed(acme):
    response = acme.call("GET", PATH, headers={"X-Forwarded-For": "127.0.0.1"})
    assert response.status_code == 401
    response = acme.call("GET", PATH, headers={"Forwarded": "for=127.0.0.1"})
    assert response.status_code == 401


def test_x_forwarded_for_never_makes_a_stranger_trusted(acme):
    response = acme.call(
        "GET", PATH, REMOTE_ADDR="192.0.2.7", headers={"X-Forwarded-For": "127.0.0.1"}
    )
    assert response.status_code == 401
