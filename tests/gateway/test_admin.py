"""The gateway's pages of the admin: what they show, and that nothing can be edited."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway import keys, policy
from gateway.identity import Caller
from gateway.models import Document, GatewayKey, PolicyDecision
from tests.gateway.making import PATH, Api

pytestmark = pytest.mark.django_db

KEYS = "/admin/gateway/gatewaykey/"
DECISIONS = "/admin/gateway/policydecision/"
DOCUMENTS = "/admin/gateway/document/"


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def make(number: int = 0) -> keys.Created:
    """Make one row of each table."""
    name = f"p{number}"
    Api(tenant="acme", principal=name).ingest(f"text {number} <script>")
    policy.record_denial(
        caller=Caller("acme", name), action="chat", resource="<b>", reason="forbidden"
    )
    return keys.create(tenant="acme", principal=name, name=f"key {number}")


def test_every_list_and_page_shows_and_escapes(admin_client):
    created = make()
    for address, model, words in (
        (KEYS, GatewayKey, "key 0"),
        (DECISIONS, PolicyDecision, "&lt;b&gt;"),
        (DOCUMENTS, Document, "acme"),
    ):
        row = model.objects.get()
        assert words in page(admin_client, address)
        assert words in page(admin_client, f"{address}{row.pk}/change/")
        assert words in page(admin_client, f"{address}?q=acme")
        assert words not in page(admin_client, f"{address}?q=nothing-like-it")
    document = page(admin_client, f"{DOCUMENTS}{Document.objects.get().pk}/change/")
    assert "text 0 &lt;script&gt;" in document
    assert created.text not in page(admin_client, KEYS)


def test_a_long_document_is_shown_in_part(admin_client):
    Api(tenant="acme", principal="ada").ingest("x" * 30_000)
    shown = page(admin_client, f"{DOCUMENTS}{Document.objects.get().pk}/change/")
    assert "x" * 20_000 in shown
    assert "x" * 20_001 not in shown


@pytest.mark.parametrize("address", [KEYS, DECISIONS, DOCUMENTS])
def test_nothing_can_be_added_changed_or_deleted(admin_client, address):
    make()
    model = {KEYS: GatewayKey, DECISIONS: PolicyDecision, DOCUMENTS: Document}[address]
    row = model._default_manager.values().get()
    assert admin_client.get(f"{address}add/").status_code == 403
    for end in ("change", "delete"):
        answer = admin_client.post(f"{address}{row['id']}/{end}/", {"tenant": "globex"})
        assert answer.status_code == 403
    assert model._default_manager.values().get() == row


def test_keys_are_revoked_and_the_revocation_is_logged(admin_client):
    created = make()
    api = Api(key=created.text)
    assert api.call("GET", PATH).status_code == 200
    form = {"action": "revoke", "_selected_action": [created.key.pk]}
    assert "Revoked 1." in admin_client.post(KEYS, form, follow=True).content.decode()
    assert "Revoked 0." in admin_client.post(KEYS, form, follow=True).content.decode()
    assert api.call("GET", PATH).status_code == 401
    assert LogEntry.objects.get().get_change_message() == "Revoked."


def test_whoever_may_only_look_cannot_revoke(client):
    created = make()
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_gatewaykey"))
    client.force_login(viewer)
    assert "Revoke" not in page(client, KEYS)
    client.post(KEYS, {"action": "revoke", "_selected_action": [created.key.pk]})
    assert GatewayKey.objects.get().revoked_at is None


def test_the_lists_cost_the_same_queries_however_long(admin_client):
    counts = []
    for start in (0, 10):
        for number in range(start, start + 5):
            make(number)
        with CaptureQueriesContext(connection) as queries:
            for address in (KEYS, DECISIONS, DOCUMENTS):
                page(admin_client, address)
        counts.append(len(queries))
    assert counts[0] == counts[1]
