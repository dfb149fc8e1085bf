"""Operators in the admin: keys are made and revoked, the rest is looked at."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.admin.models import LogEntry

from gateway import keys, static_subscriptions
from gateway.models import GatewayKey
from tests.gateway.client import PATH, Api
from tests.gateway.factories import configured, declared
from tests.webhooks_core.admin.looking import looker, page
from webhooks_core.models import Endpoint, bearer

pytestmark = pytest.mark.django_db

KEYS = "/admin/gateway/gatewaykey/"
ENDPOINTS = "/admin/webhooks_core/endpoint/"
FORM = {"tenant": "acme", "principal": "robot", "name": "build", "days": "30"}


def make(**fields) -> keys.Created:
    return keys.create(**({"tenant": "acme", "principal": "ada"} | fields))


# ── Keys ────────────────────────────────────────────────────────────────────────────


def test_a_key_is_made_and_its_text_shown_once(admin_client):
    made = admin_client.post(f"{KEYS}add/", FORM)
    row = GatewayKey.objects.get()
    assert made["Location"] == f"{KEYS}{row.pk}/change/"  # a reload sends no form
    cookie = admin_client.cookies["messages"].value
    response = admin_client.get(made["Location"])
    assert "no-store" in response["Cache-Control"]
    shown = unescape(response.content.decode())
    (text,) = re.findall(r"gw_key_\w{36}", shown)
    assert text not in cookie
    assert row.digest == bearer.digest(text)
    assert (row.tenant, row.principal, row.name) == ("acme", "robot", "build")
    assert row.expires_at == row.created_at + timedelta(days=30)
    assert Api(key=text).call("GET", PATH).status_code == 200
    entry = LogEntry.objects.get()
    for address in (KEYS, f"{KEYS}{row.pk}/change/", f"{KEYS}{row.pk}/history/"):
        assert text not in page(admin_client, address)
    assert text not in f"{entry.change_message}{entry.object_repr}"


def test_a_key_gets_the_rights_of_the_form(admin_client):
    fields = {
        "scopes": ["keys", "chat"],
        "models": " small \n\nlarge",
        "budget": "cost month 12.5",
        "days": "",
    }
    admin_client.post(f"{KEYS}add/", FORM | fields)
    row = GatewayKey.objects.get()
    assert row.expires_at is None
    assert row.rights.scopes == {"chat", "keys"}
    assert row.budget == {"counts": "cost", "window": "month", "limit": 12.5}
    assert row.allowed_models == ["large", "small"]
    shown = page(admin_client, f"{KEYS}{row.pk}/change/")
    assert "chat, keys" in shown
    assert "large" in shown


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"principal": "é"}, "principal: 1 to 128"),
        ({"tenant": "a\0"}, "Null characters are not allowed"),
        ({"days": "9" * 50}, "less than or equal to 3650"),
        ({"scopes": ["all of them"]}, "Select a valid choice"),
        ({"budget": "cost month"}, "budget: needs what it counts"),
        ({"budget": "cost decade 1"}, "budget: window"),
    ],
)
def test_a_key_that_cannot_be_is_not_made(admin_client, changes, words):
    response = admin_client.post(f"{KEYS}add/", FORM | changes)
    assert words in unescape(response.content.decode())
    assert not GatewayKey.objects.exists()


def test_keys_are_revoked_together(admin_client):
    made = [make() for _ in range(3)]
    pks = [each.key.pk for each in made]
    keys.revoke(pks[:1])
    Api(key=made[2].text).get()
    data = {"action": "revoke_selected", "_selected_action": pks}
    page_text = admin_client.post(KEYS, data, follow=True).content.decode()
    assert "Revoked. Within 5 seconds nobody accepts it. (2 of 3)" in page_text
    assert "It was revoked before." in page_text
    assert Api(key=made[2].text).call("GET", PATH).status_code == 401
    assert not GatewayKey.objects.filter(revoked_at=None).exists()
    assert LogEntry.objects.count() == 2


def test_the_list_tells_states_and_never_a_key(admin_client):
    live, revoked = make(), make()
    keys.revoke([revoked.key.pk])
    GatewayKey.objects.filter(pk=make().key.pk).update(expires_at="2020-01-01T00:00Z")
    shown = page(admin_client, KEYS)
    for state in ("Live", "Expired", "Revoked"):
        assert f">{state}</span>" in shown
    assert live.text[: keys.SHOWN_LENGTH] in shown
    assert live.text not in shown
    one = page(admin_client, f"{KEYS}{live.key.pk}/change/")
    assert live.key.digest not in one
    assert live.key.display_prefix in one


# ── Who may ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("codename", ["view_gatewaykey", "delete_gatewaykey"])
def test_whoever_may_only_look_makes_and_revokes_nothing(client, codename):
    key = make().key
    looker(client, [codename, "view_gatewaykey"])
    assert "revoke_selected" not in page(client, KEYS)
    assert client.post(f"{KEYS}add/", FORM).status_code == 403
    assert client.post(f"{KEYS}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    data = {"action": "revoke_selected", "_selected_action": [key.pk]}
    client.post(KEYS, data)
    assert list(GatewayKey.objects.filter(revoked_at=None)) == [key]


def test_who_may_not_see_a_key_makes_none(client):
    looker(client, ["add_gatewaykey"])
    assert client.post(f"{KEYS}add/", FORM).status_code == 403
    assert not GatewayKey.objects.exists()


def test_staff_without_permission_see_nothing(client):
    looker(client)
    assert client.get(KEYS).status_code == 403


# ── Endpoints ───────────────────────────────────────────────────────────────────────


def shown(endpoint: Endpoint) -> str:
    return f"{ENDPOINTS}{endpoint.pk}/change/"


def operate(client, endpoint: Endpoint, action: str) -> str:
    form = {"button": "1", "_selected_action": endpoint.pk, "action": action}
    response = client.post(ENDPOINTS, form, follow=True)
    return unescape(response.content.decode())


def test_a_static_endpoint_says_where_it_is_declared_and_offers_no_change(
    admin_client, acme
):
    static_subscriptions.sync(configured(declared(secret="hush-hush")))
    endpoint = Endpoint.objects.get()
    text = page(admin_client, shown(endpoint))
    assert "the configuration, as " in text
    assert "hush-hush" not in text
    assert 'value="rotate_secret"' not in text


@pytest.mark.spec("gateway", "WEBHOOK_ALLOWED_TARGETS: endpoints that staff marked")
def test_staff_allow_an_endpoint_the_internal_networks_of_the_settings(
    admin_client, settings, acme
):
    subscription = acme.create()
    target = Endpoint.objects.get()
    inside = "http://10.1.2.3:8080/hook"
    assert "internal networks" not in page(admin_client, shown(target))
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.0.0.0/8"]
    assert "internal networks" in page(admin_client, shown(target))
    acme.patch(subscription, 400, url=inside)
    text = operate(admin_client, target, "toggle_trusted")
    assert "Internal networks: allowed." in text
    assert acme.patch(subscription, url=inside)["url"] == inside
    acme.patch(subscription, 400, url="http://192.168.0.1/")
    assert "not allowed" in operate(admin_client, target, "toggle_trusted")
    assert Endpoint.objects.get().trusted is False
