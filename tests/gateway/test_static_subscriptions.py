"""Static subscriptions: what the configuration file declares, tenants see and never change."""

from dataclasses import replace
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import OperationalError
from django.utils import timezone

from gateway import configuration, static_subscriptions
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
)
from tests.gateway.client import PATH
from tests.gateway.factories import URL, configured, declared
from tests.receiver import receiver
from tests.signatures import verify_timestamped
from tests.webhooks_core.engine import dispatch
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.secrets import MASK

pytestmark = pytest.mark.django_db

READ_ONLY = "This subscription is part of the gateway's configuration and read-only."


@pytest.fixture
def declare(monkeypatch):
    """Name these static subscriptions in the configuration, without a start."""

    def configure(*subscriptions: StaticSubscription) -> None:
        current = configured(*subscriptions)
        monkeypatch.setattr(configuration, "current", lambda: current)

    return configure


@pytest.fixture
def use(declare):
    """Restart with these static subscriptions."""

    def restart(*subscriptions: StaticSubscription) -> None:
        declare(*subscriptions)
        static_subscriptions.sync_at_start()

    return restart


def synchronise(*subscriptions: StaticSubscription) -> int:
    return static_subscriptions.sync(configured(*subscriptions))


@pytest.mark.spec("gateway", "Static subscriptions may also be configured")
@pytest.mark.django_db(transaction=True)
def test_a_static_subscription_receives_and_leaves_with_its_history(acme, use):
    with receiver(204) as subscriber:
        use(declared(subscriber.url, secret="shared secret"))
        acme.ingest("one")
        assert dispatch() == 1
        use()
        acme.ingest("two")
        assert dispatch() == 0
    [request] = subscriber.requests
    verify_timestamped(
        "shared secret",
        signature=request.headers["X-Gateway-Signature"],
        body=request.body,
        now=request.at,
    )
    assert acme.get() == {"items": []}
    assert Delivery.objects.get().status == Delivery.Status.DELIVERED
    assert Endpoint.objects.get().deleted_at is not None


def test_a_static_subscription_shows_as_read_only(acme, globex, use):
    use(declared())
    [shown] = acme.get()["items"]
    assert shown["secret"] == MASK
    assert (shown["url"], shown["active"]) == (URL, True)
    assert acme.get(f"/{shown['id']}") == shown
    assert globex.get() == {"items": []}
    assert globex.call("DELETE", f"{PATH}/{shown['id']}").status_code == 404
    assert acme.test(shown).status_code == 202
    own = f"{PATH}/{shown['id']}"
    for call in (
        ("PATCH", own, {"active": False}),
        ("PATCH", own, b"{"),
        ("DELETE", own),
    ):
        refused = acme.call(*call)
        assert (refused.status_code, refused.json()) == (409, {"detail": READ_ONLY})
    assert acme.get()["items"] == [shown]


def test_static_subscriptions_take_no_room_from_the_quota(acme, use, monkeypatch):
    limited = replace(profiles.get("gateway"), quota=2)
    monkeypatch.setitem(profiles.PROFILES, "gateway", limited)
    use(*(declared(f"{URL}/{n}") for n in range(3)))
    for _ in range(2):
        acme.create()
    assert acme.call("POST", PATH, {"url": URL}).status_code == 429
    assert len(acme.get()["items"]) == 5


def test_a_synchronisation_changes_what_changed_and_nothing_else():
    first, second = declared(), declared(f"{URL}/2")
    assert synchronise(first, second) == 2
    assert synchronise(first, second) == 0
    ids = set(Endpoint.objects.values_list("public_id", flat=True))
    changed = declared(event_types=("drift.detected",), secret="other")
    assert synchronise(changed, second) == 1
    assert synchronise(declared(event_types=("drift.detected",)), second) == 1
    drifted = declared(f"{URL}/2", event_types=("drift.detected",))
    assert synchronise(declared(), drifted) == 2
    assert set(Endpoint.objects.values_list("public_id", flat=True)) == ids
    moved = declared(tenant_id="globex")
    assert synchronise(moved) == 3
    assert [item.owner for item in Endpoint.objects.static("gateway")] == ["globex"]
    assert synchronise() == 1


def test_the_secret_of_a_static_subscription_follows_the_file_at_once(settings):
    for secret in ("one", "two"):
        synchronise(declared(secret=secret))
        assert Endpoint.objects.get().secrets(now=timezone.now()) == [secret]
    settings.WEBHOOK_SECRET_KEYS = [Fernet.generate_key().decode()]
    synchronise(declared(secret="two"))
    assert Endpoint.objects.get().secrets(now=timezone.now()) == ["two"]


def test_the_command_synchronises_and_no_request_does(acme, declare):
    declare(declared())
    assert acme.get() == {"items": []}
    acme.ingest("one")
    out = StringIO()
    call_command("sync_gateway_config", stdout=out, verbosity=0)
    assert out.getvalue() == ""
    assert Endpoint.objects.static("gateway").exists()
    Endpoint.objects.all().delete()
    call_command("sync_gateway_config", stdout=out)
    call_command("sync_gateway_config", stdout=out)
    assert out.getvalue().splitlines() == [
        "static subscriptions: 1 changed",
        "static subscriptions: 0 changed",
    ]


def test_a_start_without_a_database_goes_on(declare, monkeypatch):
    declare(declared())
    monkeypatch.setattr(static_subscriptions, "sync", _fail)
    static_subscriptions.sync_at_start()
    assert not Endpoint.objects.exists()


def _fail(_: Configuration) -> None:
    raise OperationalError("no route to the database")
