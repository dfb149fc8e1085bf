"""What becomes of webhooks and tokens when an account is deleted or inactive."""

import io
import time
from functools import partial
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import transaction
from django.db.models.deletion import Collector
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from recording.accounts import lifecycle, personal_tokens
from recording.accounts.owners import InactiveAccountError
from recording.models import PersonalToken, Recording
from recording.webhooks import SUMMARY_COMPLETED
from tests.factories import UserFactory
from tests.products.product import RECORDING
from tests.receiver import receiver
from tests.recording.conftest import URL, imported
from tests.recording.factories import RefreshTokenFactory
from tests.running import until
from tests.webhooks_core.engine import dispatch, running_dispatcher
from webhooks_core import endpoints, publishing, tasks
from webhooks_core.dispatch import notify
from webhooks_core.dispatch.sender import STALE_AFTER_S
from webhooks_core.models import (
    Attempt,
    Delivery,
    Endpoint,
    EndpointQueue,
    EndpointSecret,
    Event,
    OwnerRemoval,
)
from webhooks_core.upkeep.sweep import sweep

ROWS = (Endpoint, EndpointSecret, EndpointQueue, Event, Delivery, Attempt)
pytestmark = pytest.mark.django_db
committing = pytest.mark.django_db(transaction=True)


def counts():
    return [model.objects.count() for model in ROWS]


def of_gateway(api):
    return {"profile": "gateway", "owner": api.owner, "url": URL}


# ── Deletion ────────────────────────────────────────────────────────────────────────


@committing
@pytest.mark.parametrize("way", ["instance", "queryset", "admin"])
def test_deleting_an_account_deletes_its_webhooks_and_no_other_s(
    api, stranger, admin_client, way
):
    with receiver(500) as server:
        stranger.create(url=server.url)
        stranger.publish(2)
        dispatch()
        theirs = counts()
        api.create(url=server.url)
        deleted_id = api.create(url=server.url)["endpoint_id"]
        api.delete(f"webhooks/{deleted_id}")
        api.publish(3)
        dispatch()
        page = f"/admin/auth/user/{api.user.pk}/delete/"
        {
            "instance": api.user.delete,
            "queryset": User.objects.filter(pk=api.user.pk).delete,
            "admin": partial(admin_client.post, page, {"post": "yes"}),
        }[way]()
        assert not User.objects.filter(username="ada").exists()
        assert not Endpoint.objects.of("recording", api.owner).exists()
        tasks.remove_ended_owners()
        assert counts() == theirs
    assert not Endpoint.objects.exclude(owner=stranger.owner).exists()


@committing
def test_what_is_created_while_an_account_is_deleted_goes_with_it(
    api, app, monkeypatch
):
    refresh_token, delete = app.tokens()["refresh_token"], Collector.delete

    def create_first(collector: Collector) -> Any:
        if User in collector.data:  # its rows are collected, and not locked yet
            assert app.refresh(refresh_token).status_code == 200
            imported(api.user)
        return delete(collector)

    monkeypatch.setattr(Collector, "delete", create_first)
    User.objects.get(pk=api.user.pk).delete()
    tasks.remove_ended_owners()
    tables = (User, AccessToken, RefreshToken, Recording, Event)
    assert not any(model.objects.exists() for model in tables)


@committing
def test_a_deletion_that_is_rolled_back_deletes_nothing(api):
    api.create()
    api.publish()
    before = counts()
    with transaction.atomic():
        api.user.delete()
        assert not Endpoint.objects.of("recording", api.owner).exists()
        transaction.set_rollback(True)
    tasks.remove_ended_owners()
    assert counts() == before
    assert Endpoint.objects.of("recording", api.owner).exists()
    assert User.objects.filter(username="ada").exists()


@committing
def test_the_sweep_removes_what_a_lost_task_leaves(api, monkeypatch):
    monkeypatch.setattr(notify, "enqueue", lambda _: False)
    api.create()
    api.publish()
    api.user.delete()
    assert Event.objects.exists()
    sweep()
    assert counts() == [0] * len(ROWS)
    assert not OwnerRemoval.objects.exists()


@committing
def test_many_deletions_beside_a_loaded_engine_lose_no_delivery_of_others(stranger):
    users = UserFactory.create_batch(8)
    with receiver(204) as server, receiver(204) as other, running_dispatcher():
        server.gate.clear()
        for user in users:
            owner: Any = {"profile": "recording", "owner": str(user.pk)}
            endpoints.create(**owner, url=server.url, event_types=[SUMMARY_COMPLETED])
            for _ in range(5):
                publishing.publish(**owner, event_type=SUMMARY_COMPLETED, data={})
        stranger.create(url=other.url)
        until(lambda: len(server.requests) == 8 * 4, "all that may be in flight")
        for user in users:
            user.delete()
            stranger.publish(5)
        request_count = len(server.requests)
        until(lambda: len(other.requests) == 40, "all deliveries of others")
        time.sleep(STALE_AFTER_S)  # what was claimed before may be sent for so long
        server.gate.set()
        until(lambda: not Delivery.objects.pending().exists(), "the end of all")
        assert len(server.requests) == request_count
    tasks.remove_ended_owners()
    assert {row.owner for row in Event.objects.all()} == {stranger.owner}


@committing
def test_a_call_whose_account_was_deleted_meanwhile_creates_nothing(api, monkeypatch):
    def delete_meanwhile(*_: object, **__: object):
        User.objects.filter(pk=api.user.pk).delete()

    monkeypatch.setattr(endpoints, "check_url", delete_meanwhile)
    response = api.post("webhooks", {"url": URL})
    RECORDING.error(response, 401)
    assert 'error="invalid_token"' in response["WWW-Authenticate"]
    assert counts() == [0] * len(ROWS)


# ── Inactive accounts ───────────────────────────────────────────────────────────────


def switch(user, *, on, way="save"):
    user = User.objects.get(pk=user.pk)
    user.is_active = on
    user.save(update_fields=["is_active"] if way == "update_fields" else None)


@committing
@pytest.mark.parametrize("way", ["save", "update_fields", "admin"])
def test_pending_deliveries_are_held_and_go_on_when_the_account_is_active_again(
    api, admin_client, way
):
    def set_active(on):
        if way != "admin":
            switch(api.user, on=on, way=way)
            return
        day, time = f"{api.user.date_joined:%Y-%m-%d %H:%M:%S}".split()
        form = {"username": "ada", "date_joined_0": day, "date_joined_1": time}
        page = f"/admin/auth/user/{api.user.pk}/change/"
        response = admin_client.post(page, form | ({"is_active": "on"} if on else {}))
        assert response.status_code == 302, response.content

    with receiver(204) as server:
        api.create(url=server.url)
        api.publish(2)
        set_active(False)
        RECORDING.error(api.get("webhooks"), 401)
        api.publish()  # published meanwhile: no record
        assert (Event.objects.count(), Delivery.objects.pending().count()) == (3, 2)
        assert dispatch() == 0
        set_active(True)
        assert dispatch() == 2
        api.publish()
        assert dispatch() == 1
    assert len(server.requests) == 3


def test_a_disabled_endpoint_of_an_account_that_is_active_again_stays_disabled(api):
    api.create()
    Endpoint.objects.update(status=Endpoint.Status.DISABLED, consecutive_failures=20)
    switch(api.user, on=False)
    switch(api.user, on=True)
    endpoint = Endpoint.objects.get()
    assert (endpoint.status, endpoint.consecutive_failures) == (2, 20)
    assert endpoint.active


def test_endpoints_of_others_and_of_other_products_go_on(api, stranger):
    stranger.create()
    endpoints.create(**of_gateway(api), event_types=[])
    switch(api.user, on=False)
    assert set(Endpoint.objects.values_list("active", flat=True)) == {True}


def test_disabling_revokes_the_tokens_and_enabling_does_not_restore_them(api, stranger):
    RefreshTokenFactory.create(user=api.user)
    switch(api.user, on=False)
    RECORDING.error(api.get("webhooks"), 401)
    assert not AccessToken.objects.exists()
    assert RefreshToken.objects.get().revoked is not None
    assert PersonalToken.objects.get(user=api.user).revoked_at is not None
    switch(api.user, on=True)
    RECORDING.error(api.get("webhooks"), 401)
    assert personal_tokens.authenticate(api.token) is None
    assert stranger.get("webhooks").status_code == 200


def test_an_inactive_account_gets_no_recording_and_no_token(user, tmp_path):
    switch(user, on=False)
    user.refresh_from_db()
    file = tmp_path / "recording.json"
    file.write_bytes(orjson.dumps({"audio_id": "aud_1"}))
    for arguments, words in (
        (["import_recording", str(file), "--account", "ada"], "nothing was stored"),
        (["create_personal_token", "ada", "--days", "3"], "inactive"),
    ):
        out = io.StringIO()
        with pytest.raises(CommandError, match="inactive") as caught:
            call_command(*arguments, stdout=out)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
        assert out.getvalue() == ""
    with pytest.raises(InactiveAccountError):
        imported(user)
    assert not Recording.objects.exists()
    assert not PersonalToken.objects.exists()
    assert not Event.objects.exists()


def test_the_admin_s_import_for_an_inactive_account_is_one_error(user, admin_client):
    switch(user, on=False)
    form = {"account": user.pk, "text": '{"audio_id": "aud_1"}', "publish_event": "on"}
    response = admin_client.post("/admin/recording/recording/add/", form)
    assert response.status_code == 200
    [[error]] = response.context["adminform"].form.errors.values()
    assert error == "The account 'ada' is inactive; nothing was stored."
    assert not Recording.objects.exists()


def test_a_login_of_an_active_account_costs_no_query_more(
    api, django_assert_num_queries
):
    api.create()
    user = User.objects.get(pk=api.user.pk)
    user.last_login = timezone.now()
    with django_assert_num_queries(1):
        user.save(update_fields=["last_login"])


@committing
@pytest.mark.parametrize("on", [True, False])
def test_of_two_changes_at_once_the_one_that_is_stored_counts(api, on):
    api.create()
    earlier = User.objects.get(pk=api.user.pk)
    earlier.is_active = not on
    switch(api.user, on=on)  # stored after the earlier change, but followed before it
    lifecycle.sync_activity(earlier)
    assert Endpoint.objects.get().active is on


@committing
def test_a_change_of_an_account_that_was_deleted_meanwhile_is_no_error(api):
    api.create()
    stale = User.objects.get(pk=api.user.pk)
    api.user.delete()
    stale.is_active = False
    lifecycle.sync_activity(stale)
    assert not Endpoint.objects.of("recording", api.owner).exists()
