"""`manage.py erase` leaves nothing of a tenant or an account, and nothing else is touched."""

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from gateway import keys
from gateway.chat.models import BudgetCounter
from gateway.models import IdempotencyKey
from gateway.portal import links
from recording.library.importing import import_recording
from tests.factories import UserFactory
from tests.gateway.chat.factories import (
    RequestRecordFactory,
    UsageDayFactory,
)
from tests.gateway.factories import (
    DocumentFactory,
    GatewayKeyFactory,
    PolicyDecisionFactory,
)
from tests.recording.factories import PersonalTokenFactory, RefreshTokenFactory
from webhooks_core import endpoints, publishing
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.upkeep import removal

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.services]

NAME = "erase-me-7c1f"
DATA = {"document_id": "doc_1"}
CONTEXT = {"request_id": "1", "principal_id": "ada", "trace_id": "0" * 32}


@pytest.fixture(autouse=True)
def no_wait(monkeypatch):
    monkeypatch.setattr(keys, "CACHE_S", 0.0)


def mentions(word: str) -> set[str]:
    """Return the tables with a row in which a word occurs."""
    return {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if any(word in _text(row) for row in model._default_manager.values_list())
    }


def _text(row: tuple[object, ...]) -> str:
    return "|".join(
        bytes(cell).decode(errors="replace")
        if isinstance(cell, bytes | memoryview)
        else str(cell)
        for cell in row
    )


def make_webhooks(profile: str, owner: str, event_type: str, word: str) -> None:
    """Make an endpoint with one delivery that has ended and one that waits, and a deleted one."""
    url = f"https://{word}.example.com"
    for number in range(2):
        endpoint = endpoints.create(
            profile=profile, owner=owner, url=url, event_types=[event_type]
        ).endpoint
        for _ in range(2):
            publishing.publish(
                profile=profile,
                owner=owner,
                event_type=event_type,
                data=DATA | {"title": url},
                metadata=CONTEXT,
            )
        ended = Delivery.objects.filter(endpoint=endpoint).earliest("pk")
        Attempt.objects.create(
            delivery=ended, number=1, started_at=timezone.now(), duration_ms=1
        )
        Delivery.objects.filter(pk=ended.pk).fail(error=word)
        if number:
            endpoints.delete(endpoint)


def make_tenant(tenant: str) -> None:
    GatewayKeyFactory.create(tenant=tenant)
    PolicyDecisionFactory.create(tenant=tenant)
    DocumentFactory.create(tenant=tenant)
    IdempotencyKey.objects.create(tenant=tenant, key=f"of {tenant}")
    links.create(tenant=tenant, principal="ada", capabilities=["view"], actor=tenant)
    RequestRecordFactory.create(tenant=tenant)
    UsageDayFactory.create(tenant=tenant)
    BudgetCounter.objects.create(
        budget="b", subject=f"tenant {tenant}", window=0, tenant=tenant
    )
    make_webhooks("gateway", tenant, "ingest.completed", tenant)


def make_account(name: str) -> User:
    account = UserFactory.create(username=name, email=f"{name}@example.com")
    PersonalTokenFactory.create(user=account, name=name)
    RefreshTokenFactory.create(user=account)
    recording = {"audio_id": f"{name}-1", "transcript": {"text": name}}
    import_recording(account=account, raw=json.dumps(recording).encode())
    make_webhooks("recording", str(account.pk), "summary.completed", name)
    Client().force_login(account)
    return account


def erase(*arguments: str) -> dict[str, Any]:
    output = io.StringIO()
    call_command("erase", *arguments, stdout=output)
    *rows, result = output.getvalue().splitlines()
    counts = (line.rsplit(maxsplit=1) for line in rows)
    return {
        "erased": result == "Erased.",
        "rows": {name: int(count) for name, count in counts},
    }


def test_nothing_of_an_erased_tenant_is_left():
    make_tenant(NAME)
    make_tenant("other")
    before = mentions("other")
    shown = erase("--tenant", NAME)
    assert shown["erased"] is False
    assert shown["rows"] == {
        "endpoints": 2, "events": 4, "deliveries": 6, "keys": 1, "policy decisions": 1,
        "idempotency keys": 1, "documents": 1, "chat requests": 1,
        "portal links": 1,
        "budget counters": 1, "days of usage": 1,
    }  # fmt: skip
    assert mentions(NAME) == before
    assert erase("--tenant", NAME, "--yes") == shown | {"erased": True}
    assert mentions(NAME) == set()
    assert mentions("other") == before


def test_a_tenant_of_whom_nothing_is_left_can_be_erased_again():
    again = erase("--tenant", NAME, "--yes")
    assert again["erased"] is True
    assert {*again["rows"].values()} == {0}


def test_nothing_of_an_erased_account_is_left():
    account, other = make_account(NAME), make_account("other")
    kept = Event.objects.filter(owner=str(other.pk)).count()
    erase("--account", NAME)
    assert User.objects.filter(pk=account.pk, is_active=True).exists()
    assert erase("--account", NAME, "--yes")["rows"]["recordings"] == 1
    assert mentions(NAME) == set()
    assert not Event.objects.filter(owner=str(account.pk)).exists()
    assert Event.objects.filter(owner=str(other.pk)).count() == kept
    with pytest.raises(CommandError, match="there is no user named"):
        erase("--account", NAME, "--yes")


def test_an_erasure_that_was_interrupted_is_finished_by_the_next(monkeypatch):
    account = make_account(NAME)
    with monkeypatch.context() as patch:
        patch.setattr(removal, "remove_owner", _die)
        with pytest.raises(KeyboardInterrupt):
            erase("--account", NAME, "--yes")
    account.refresh_from_db()
    assert not account.is_active
    erase("--account", NAME, "--yes")
    assert mentions(NAME) == set()


def _die(**_: object) -> None:
    raise KeyboardInterrupt


def test_a_tenant_with_static_subscriptions_is_refused_before_anything_is_changed():
    endpoints.create_static(
        profile="gateway", owner=NAME, static_key="hook", secret="s" * 20,
        url="https://example.com", event_types=[],
    )  # fmt: skip
    GatewayKeyFactory.create(tenant=NAME, expires_at=timezone.now() + timedelta(days=1))
    before = mentions(NAME)
    for arguments in (["--tenant", NAME], ["--tenant", NAME, "--yes"]):
        with pytest.raises(CommandError, match="sync_gateway_config"):
            erase(*arguments)
    assert mentions(NAME) == before
    assert Endpoint.objects.filter(deleted_at=None).exists()
