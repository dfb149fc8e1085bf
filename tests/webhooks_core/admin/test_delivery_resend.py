"""Deliveries are history: one can only be resent, retried now or cancelled, each by POST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone

from tests.webhooks_core.admin.delivery_pages import LIST, change, make
from tests.webhooks_core.admin.looking import looker, page
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.admin import deliveries
from webhooks_core.dispatch.sql.deliveries import claim
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_history_cannot_be_created_changed_or_deleted(admin_client):
    EndpointFactory.create()
    publish_event()
    before = Delivery.objects.values().get()
    fields = {"status": 1, "_save": "Save"}
    assert admin_client.post(change(only_delivery()), fields).status_code == 403
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(f"{LIST}add/", fields).status_code == 403
    assert (
        admin_client.post(f"{LIST}{only_delivery().pk}/delete/", fields).status_code
        == 403
    )
    chosen = {"action": "delete_selected", "_selected_action": [only_delivery().pk]}
    admin_client.post(LIST, chosen)
    assert Delivery.objects.values().get() == before


def test_resending_queues_a_copy_and_is_logged(admin_client):
    EndpointFactory.create()
    publish_event()
    first = only_delivery()
    Delivery.objects.all().fail(error="over")
    answer = admin_client.post(f"{LIST}{first.pk}/resend/")
    replay = Delivery.objects.get(trigger="replay")
    assert answer.headers["Location"] == change(replay)
    entry = LogEntry.objects.get()
    assert entry.object_id == str(first.pk)
    assert entry.change_message == f"Resent as {replay.public_id}."
    assert f"Queued again as {replay.public_id}." in page(admin_client, change(replay))
    assert replay.public_id in page(admin_client, change(first))


def test_chosen_deliveries_are_resent_oldest_first(admin_client):
    EndpointFactory.create()
    pks = [publish_event().delivery_set.get().pk for _ in range(3)]
    Delivery.objects.all().fail(error="over")
    chosen = {"action": "resend_selected", "_selected_action": pks}
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "Queued 3 of 3 again." in answer.content.decode()
    copies = Delivery.objects.filter(replay_number=1).order_by("pk")
    firsts = Delivery.objects.filter(replay_number=0).order_by("pk")
    assert [row.event_id for row in copies] == [row.event_id for row in firsts]
    assert LogEntry.objects.count() == 3


def test_too_many_at_once_are_refused(admin_client, monkeypatch):
    make(3)
    monkeypatch.setattr(deliveries, "RESENT_AT_ONCE", 2)
    first = Delivery.objects.earliest("pk").pk
    chosen = {
        "action": "resend_selected",
        "_selected_action": [first],
        "select_across": 1,
    }
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "choose at most 2 at once" in answer.content.decode()
    assert Delivery.objects.count() == 3


def test_nothing_is_resent_to_a_deleted_endpoint(admin_client):
    target = EndpointFactory.create()
    publish_event()
    endpoints.delete(target)
    answer = admin_client.post(f"{LIST}{only_delivery().pk}/resend/", follow=True)
    assert "Nothing was queued" in answer.content.decode()
    chosen = {"action": "resend_selected", "_selected_action": [only_delivery().pk]}
    answer = admin_client.post(LIST, chosen, follow=True)
    assert "Queued 0 of 1 again." in answer.content.decode()
    assert Delivery.objects.count() == 1
    assert not LogEntry.objects.exists()


def test_a_pending_delivery_is_not_doubled_but_due_now(admin_client):
    EndpointFactory.create()
    publish_event()
    Delivery.objects.update(next_attempt_at=timezone.now() + timedelta(hours=1))
    address = f"{LIST}{only_delivery().pk}"
    for operation in ("resend", "retry-now"):
        answer = admin_client.post(f"{address}/{operation}/", follow=True)
        assert "Its next attempt is due now." in answer.content.decode()
        due = only_delivery().next_attempt_at
        assert due is not None
        assert due <= timezone.now()
    chosen = {"action": "resend_selected", "_selected_action": [only_delivery().pk]}
    assert (
        "Queued 1 of 1" in admin_client.post(LIST, chosen, follow=True).content.decode()
    )
    assert Delivery.objects.count() == 1


def test_a_pending_delivery_is_cancelled(admin_client):
    target = EndpointFactory.create()
    publish_event()
    address = f"{LIST}{only_delivery().pk}"
    assert "/cancel/" in page(admin_client, f"{address}/change/")
    answer = admin_client.post(f"{address}/cancel/", follow=True)
    assert "Cancelled: it is not sent any more." in answer.content.decode()
    cancelled = only_delivery()
    assert (cancelled.status, cancelled.last_error) == (2, "cancelled")
    assert LogEntry.objects.get().change_message == "Cancelled."
    target.refresh_from_db()
    assert target.consecutive_failures == 0


@pytest.mark.parametrize("operation", ["retry-now", "cancel"])
@pytest.mark.parametrize("state", ["ended", "claimed"])
def test_what_does_not_wait_is_neither_retried_nor_cancelled(
    admin_client, operation, state
):
    EndpointFactory.create()
    publish_event()
    if state == "ended":
        Delivery.objects.all().fail(error="over")
    else:
        claim([only_delivery().pk], lease=1)
    before = Delivery.objects.values().get()
    address = f"{LIST}{only_delivery().pk}/{operation}/"
    assert (
        "Nothing was changed"
        in admin_client.post(address, follow=True).content.decode()
    )
    assert Delivery.objects.values().get() == before
    assert not LogEntry.objects.exists()


def test_a_get_resends_nothing(admin_client):
    EndpointFactory.create()
    publish_event()
    before = Delivery.objects.values().get()
    for operation in ("resend", "retry-now", "cancel"):
        answer = admin_client.get(f"{LIST}{only_delivery().pk}/{operation}/")
        assert answer.status_code == 405
        assert answer.headers["Allow"] == "POST"
    assert Delivery.objects.values().get() == before


def test_a_user_with_view_permission_sees_all_and_changes_nothing(client):
    EndpointFactory.create()
    publish_event()
    looker(client, ["view_delivery"])
    text = page(client, change(only_delivery()))
    assert "resend_selected" not in page(client, LIST)
    for operation in ("resend", "retry-now", "cancel"):
        assert f"/{operation}/" not in text
        address = f"{LIST}{only_delivery().pk}/{operation}/"
        assert client.post(address).status_code == 403
    chosen = {"action": "resend_selected", "_selected_action": [only_delivery().pk]}
    client.post(LIST, chosen)
    assert Delivery.objects.count() == 1


def test_a_user_without_permission_sees_nothing(client):
    EndpointFactory.create()
    publish_event()
    looker(client)
    for address in (LIST, change(only_delivery()), f"{LIST}{only_delivery().pk}/body/"):
        page(client, address, 403)
    client.logout()
    answer = client.get(f"{LIST}{only_delivery().pk}/body/")
    assert answer.status_code == 302
    assert "/admin/login/" in answer.headers["Location"]


@pytest.mark.parametrize("pk", [999, 2**63, 2**200])
def test_a_missing_delivery_is_a_404(admin_client, pk):
    assert admin_client.post(f"{LIST}{pk}/resend/").status_code == 404
    assert admin_client.get(f"{LIST}{pk}/body/").status_code == 404
    assert admin_client.get(f"{LIST}{pk}/change/").status_code == 302


def test_the_page_works_without_its_product(admin_client):
    EndpointFactory.create()
    publish_event()
    Endpoint.objects.update(profile="gone")
    assert "This cannot be signed" in page(admin_client, change(only_delivery()))
    answer = admin_client.post(f"{LIST}{only_delivery().pk}/resend/", follow=True)
    assert "Nothing was queued" in answer.content.decode()
