"""Keys that a key of the same tenant manages over HTTP: never with more rights than its own."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from structlog.testing import capture_logs

from gateway import keys
from gateway.identity import KEYS, SCOPES
from gateway.models import GatewayKey
from tests.gateway.client import EVENTS, INGEST, PATH, Api
from webhooks_core.models import bearer
from webhooks_core.times import iso

pytestmark = pytest.mark.django_db

ADDRESS = "/v1/keys"
BUDGET = {"counts": "tokens", "window": "day", "limit": 10}
TIME = timezone.now().replace(microsecond=0) + timedelta(days=30)


def manager(**fields: Any) -> Api:
    values = {"tenant": "acme", "principal": "ada", "scopes": SCOPES} | fields
    return Api(key=keys.create(**values).text)


def create(api: Api, status: int = 201, /, **fields: Any) -> Any:
    before = GatewayKey.objects.count()
    response = api.call("POST", ADDRESS, fields)
    assert response.status_code == status, response.content
    assert GatewayKey.objects.count() - before == (status == 201)
    return response.json() if status == 201 else response.json()["detail"]


# ── Creation ────────────────────────────────────────────────────────────────────────


def test_a_key_is_shown_once_and_works():
    api = manager()
    with capture_logs() as logs:
        created = create(api, name="robot", principal="bob", scopes=["ingest"])
    text = created.pop("key")
    assert bearer.is_well_formed(text, keys.PREFIX)
    row = GatewayKey.objects.get(pk=created["id"])
    assert (row.tenant, row.principal, row.created_by) == ("acme", "bob", "ada")
    assert created == {
        "id": row.pk,
        "prefix": text[: keys.SHOWN_LENGTH],
        "name": "robot",
        "principal": "bob",
        "scopes": ["ingest"],
        "models": None,
        "state": "live",
        "created_by": "ada",
        "created_at": iso(row.created_at),
        "last_used_at": None,
        "expires_at": None,
        "budget": None,
    }
    assert Api(key=text).ingest().status_code == 201
    assert (
        api.call("GET", f"{ADDRESS}/{row.pk}").json() | {"last_used_at": None}
        == created
    )
    assert logs[0]["event"] == "gateway key created"
    assert logs[0]["key_id"] == row.pk
    assert GatewayKey.objects.get(pk=logs[0]["by_key"]).principal == "ada"
    assert text not in str(logs)
    assert row.digest not in str(logs)


def test_what_a_request_leaves_out_is_what_the_manager_has():
    api = manager(models=["small", "large"], expires_at=TIME, budget=BUDGET)
    created = create(api)
    assert created["budget"] == BUDGET
    assert created["scopes"] == sorted({*SCOPES} - {KEYS})
    assert created["models"] == ["large", "small"]
    assert created["expires_at"] == iso(TIME)
    assert created["principal"] == "ada"


@pytest.mark.parametrize(
    ("fields", "status", "detail"),
    [
        # Rights that the manager does not have.
        ({"scopes": ["keys"]}, 403, "Operators alone give and revoke keys with the"),
        ({"scopes": ["chat", "usage"]}, 403, "Your key does not have the scope usage."),
        ({"models": ["small", "large"]}, 403, "Your key may not call the model large."),
        ({"expires_at": iso(TIME + timedelta(days=1))}, 403, "must not expire after"),
        # Values that no key has.
        ({"scope": ["chat"]}, 400, "A field of the body is unknown."),
        ({"budget": BUDGET}, 400, "A field of the body is unknown."),
        ({"scopes": "chat"}, 400, "scopes must be an array of strings."),
        ({"scopes": ["admin"]}, 400, "scopes must be at least one of chat, events"),
        ({"principal": "a b"}, 400, "principal: 1 to 128"),
        ({"expires_at": "tomorrow"}, 400, "expires_at must be a time such as"),
    ],
)
def test_a_key_that_cannot_be_is_refused(fields, status, detail):
    api = manager(scopes=["chat", "keys"], models=["small"], expires_at=TIME)
    assert detail in create(api, status, **fields)


def test_a_manager_that_was_revoked_a_moment_ago_creates_nothing():
    api = manager()
    api.call("GET", ADDRESS)  # now the process knows the key for some seconds
    GatewayKey.objects.update(revoked_at=timezone.now())
    assert create(api, 401) == "The gateway key is not valid."


# ── Lists and deletion ──────────────────────────────────────────────────────────────


def test_a_list_has_the_tenants_keys_by_pages_and_no_secret():
    api = manager()
    texts = [create(api, name=name)["key"] for name in ("one", "two", "three")]
    keys.create(tenant="globex", principal="gus", name="theirs")
    revoked = keys.create(tenant="acme", principal="bob", name="revoked")
    keys.revoke([revoked.key.pk])
    first = api.call("GET", f"{ADDRESS}?page_size=3").json()
    rest = api.call("GET", f"{ADDRESS}?cursor={first['next_cursor']}").json()
    names = [item["name"] for item in (*first["items"], *rest["items"])]
    assert names == ["three", "two", "one", ""]
    assert rest["next_cursor"] == ""
    assert not any(text in str(first) for text in texts)
    assert rest["items"][0]["last_used_at"] is not None
    assert api.call("GET", f"{ADDRESS}?page=2").status_code == 400


def test_a_deleted_key_stops_working_and_is_gone():
    api = manager()
    created = create(api)
    other = Api(key=created["key"])
    assert other.call("GET", PATH).status_code == 200
    address = f"{ADDRESS}/{created['id']}"
    with capture_logs() as logs:
        assert api.call("DELETE", address).status_code == 204
    assert logs[0]["event"] == "gateway key revoked"
    assert logs[0]["key_id"] == created["id"]
    assert other.call("GET", PATH).status_code == 401
    for method in ("GET", "DELETE"):
        assert api.call(method, address).status_code == 404


def test_operators_alone_revoke_managers_so_none_deletes_itself():
    api = manager()
    other = keys.create(tenant="acme", principal="bob", scopes=["keys"])
    for key in GatewayKey.objects.all():
        response = api.call("DELETE", f"{ADDRESS}/{key.pk}")
        assert response.status_code == 403
        assert "Operators alone" in response.json()["detail"]
    assert GatewayKey.objects.filter(revoked_at=None).count() == 2
    assert Api(key=other.text).call("GET", ADDRESS).status_code == 200


def test_what_is_no_key_of_the_tenant_is_not_found():
    theirs, api = keys.create(tenant="globex", principal="gus").key, manager()
    for key_id in (theirs.pk, "0", "x", "1" * 30, "²", "-1", "1.0", "%00"):
        for method in ("GET", "DELETE"):
            response = api.call(method, f"{ADDRESS}/{key_id}")
            assert response.status_code == 404
            assert response.json() == {"detail": "There is no such key."}
    assert GatewayKey.objects.get(pk=theirs.pk).revoked_at is None


# ── Scopes ──────────────────────────────────────────────────────────────────────────

CALLS = {
    "chat": ("GET", "/v1/models"),
    "events": ("POST", EVENTS),
    "ingest": ("POST", INGEST),
    "keys": ("GET", ADDRESS),
    "requests": ("GET", "/v1/requests"),
    "usage": ("GET", "/v1/usage"),
    "webhooks": ("GET", PATH),
}


@pytest.mark.parametrize("scopes", [None, *([scope] for scope in SCOPES)])
def test_each_address_needs_its_scope(scopes):
    """Where an operator gave none, `keys` alone is missing."""
    created = keys.create(tenant="acme", principal="ada", scopes=scopes)
    api = Api(key=created.text)
    answers = {name: api.call(*call) for name, call in CALLS.items()}
    refused = {name for name, answer in answers.items() if answer.status_code == 403}
    assert {*SCOPES} - refused == {*(scopes or {*SCOPES} - {KEYS})}
    for name in refused:
        detail = f"This needs a gateway key with the scope {name}."
        assert detail in answers[name].content.decode()


def test_identity_headers_manage_no_keys(acme):
    statuses = {name: acme.call(*call).status_code for name, call in CALLS.items()}
    assert {name for name, status in statuses.items() if status == 403} == {KEYS}
