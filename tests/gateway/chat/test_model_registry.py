"""Model endpoints of the admin and the configuration, and their pages."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import Error, InterfaceError, OperationalError
from django.test import Client

from gateway.chat import model_registry
from gateway.chat.metering.usage import write
from gateway.chat.metrics import ChatCollector
from gateway.chat.model_registry import ModelRegistry, load
from gateway.chat.models import (
    ModelEndpoint,
    ModelTarget,
    UsageRecord,
)
from gateway.configuration.shapes import Allow, ModelEntry, Target, Timeouts
from tests.factories import UserFactory
from tests.gateway.chat.factories import ModelEndpointFactory, ModelPriceFactory
from tests.gateway.chat.metering.test_usage import ended


@pytest.mark.django_db
def test_a_row_is_the_same_as_an_entry_of_the_configuration():
    ModelEndpointFactory.create(
        name="rows",
        supports=["streaming"],
        allow_everyone=False,
        allow_tenants=["acme"],
        allow_principals=["globex/gus"],
        idle_s=7,
        total_s=None,
        thinking="budget",
        strict_end=True,
    )
    assert load()["rows"] == ModelEntry(
        name="rows",
        upstream="openai",
        targets=(Target("http://127.0.0.1:1/v1", "there", "sk-1"),),
        supports=frozenset({"streaming"}),
        allow=Allow(
            everyone=False,
            tenants=frozenset({"acme"}),
            principals=frozenset({("globex", "gus")}),
        ),
        timeouts=Timeouts(idle_s=7, total_s=None),
        thinking="budget",
        strict_end=True,
    )
    ModelEndpointFactory.create(name="plain")
    assert load()["plain"].thinking == "adaptive"


@pytest.mark.django_db
def test_keys_are_encrypted_at_rest_and_never_shown():
    ModelEndpointFactory.create(name="rows")
    stored: Any = ModelTarget.objects.values_list("api_key", flat=True)[0]
    assert "sk-1" not in stored.ciphertext
    assert "sk-1" not in repr(load()["rows"])


@pytest.mark.django_db
def test_a_key_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("UPSTREAM_KEY", "sk-of-the-environment")
    row = ModelEndpointFactory.create(name="rows")
    row.targets.update(api_key="${UPSTREAM_KEY}")
    assert load()["rows"].targets[0].api_key == "sk-of-the-environment"
    monkeypatch.delenv("UPSTREAM_KEY")
    assert "rows" not in load()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "stored", ["sk-1\n", " sk-1\r\n", "${UPSTREAM_KEY}", "${UPSTREAM_KEY}\n"]
)
def test_a_line_break_behind_a_key_is_none_of_it(monkeypatch, stored):
    monkeypatch.setenv("UPSTREAM_KEY", "sk-1\n")
    ModelEndpointFactory.create(name="rows").targets.update(api_key=stored)
    assert load()["rows"].targets[0].api_key == "sk-1"


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["sk\n1", "clé", "a\x00b", "${UPSTREAM_KEY}"])
def test_a_key_that_no_header_can_hold_leaves_out_its_endpoint_alone(monkeypatch, key):
    monkeypatch.setenv("UPSTREAM_KEY", "sk\n1")
    ModelEndpointFactory.create(name="rows").targets.update(api_key=key)
    ModelEndpointFactory.create(name="others")
    assert "rows" not in load()
    assert "others" in load()


@pytest.mark.django_db
def test_an_unreadable_key_leaves_out_its_endpoint_alone(settings):
    ModelEndpointFactory.create(name="rows")
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    ModelEndpointFactory.create(name="other")
    assert set(load()) == {"echo", "other"}


@pytest.mark.django_db
def test_inactive_rows_are_absent_and_the_configuration_wins():
    ModelEndpointFactory.create(name="rows", is_active=False)
    ModelEndpointFactory.create(name="echo")
    assert set(load()) == {"echo"}
    assert load()["echo"].upstream == "echo"


@pytest.mark.django_db
def test_loading_takes_two_queries_however_many_there_are(django_assert_num_queries):
    ModelEndpointFactory.create_batch(5)
    with django_assert_num_queries(2):
        load()


class Database:
    """Stands for load(): counts calls, and is away when told."""

    failure: type[Error] = OperationalError

    def __init__(self) -> None:
        self.calls, self.away, self.found = 0, False, {"a": ModelEntry("a", "echo", ())}

    def __call__(self) -> Any:
        self.calls += 1
        if self.away:
            raise self.failure
        return dict(self.found)


def test_the_catalogue_is_loaded_once_for_many_and_again_when_it_is_old():
    database, clock = Database(), SimpleNamespace(now=0.0)

    async def here(function: Any) -> Any:
        await asyncio.sleep(0)
        return function()

    async def run() -> list[int]:
        known = ModelRegistry(here, load=database, clock=lambda: clock.now)
        calls = []
        await asyncio.gather(*(known.endpoints() for _ in range(5)))
        calls.append(database.calls)
        clock.now += model_registry.FRESH_S + 0.1  # served as it is, loaded beside
        database.found["b"] = ModelEntry("b", "echo", ())
        assert set(await known.endpoints()) == {"a"}
        await asyncio.sleep(0.01)
        assert set(await known.endpoints()) == {"a", "b"}
        calls.append(database.calls)
        clock.now += model_registry.STALE_S + 0.1  # too old: waited for
        database.found.pop("a")
        assert set(await known.endpoints()) == {"b"}
        calls.append(database.calls)
        return calls

    assert asyncio.run(run()) == [1, 2, 3]


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError])
def test_the_catalogue_outlives_a_short_outage_of_the_database(failure):
    database, clock = Database(), SimpleNamespace(now=0.0)
    database.failure = failure

    async def here(function: Any) -> Any:
        return function()

    async def run() -> None:
        known = ModelRegistry(here, load=database, clock=lambda: clock.now)
        await known.endpoints()
        database.away = True
        clock.now += model_registry.OUTAGE_S - 1
        assert set(await known.endpoints()) == {"a"}
        clock.now += 2
        with pytest.raises(failure):
            await known.endpoints()

    asyncio.run(run())


def test_a_database_that_hangs_is_waited_for_only_so_long(monkeypatch):
    database, clock = Database(), SimpleNamespace(now=0.0)
    hangs = asyncio.Event()

    async def here(function: Any) -> Any:
        if hangs.is_set():
            await asyncio.Event().wait()
        return function()

    async def run() -> None:
        known = ModelRegistry(here, load=database, clock=lambda: clock.now)
        await known.endpoints()
        monkeypatch.setattr(model_registry, "WAIT_S", 0.0)
        hangs.set()
        clock.now += model_registry.OUTAGE_S - 1
        for _ in range(3):
            assert set(await known.endpoints()) == {"a"}
        clock.now += 2
        with pytest.raises(TimeoutError):
            await known.endpoints()

    asyncio.run(run())


# ── Admin ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def staff(db) -> Client:
    client = Client()
    client.force_login(
        UserFactory.create(superuser=True, username="root", password="x")
    )
    return client


FORM = {
    "name": "rows",
    "upstream": "openai",
    "inference_type": "chat",
    "supports": "streaming\r\n tools ",
    "allow_tenants": "acme",
    "allow_principals": "",
    "connect_s": "5",
    "first_byte_s": "60",
    "idle_s": "60",
    "total_s": "",
    "is_active": "on",
    "targets-TOTAL_FORMS": "1",
    "targets-INITIAL_FORMS": "0",
    "targets-0-base_url": "http://127.0.0.1:1/v1",
    "targets-0-model": "there",
    "targets-0-api_key": "sk-secret",
    "targets-0-weight": "1",
}
ADD = "/admin/gateway_chat/modelendpoint/add/"


def test_an_endpoint_is_made_in_the_admin_and_its_key_is_kept(staff):
    assert staff.post(ADD, FORM).status_code == 302
    entry = load()["rows"]
    assert entry.supports == frozenset({"streaming", "tools"})
    assert entry.allow.tenants == frozenset({"acme"})
    assert entry.targets[0].api_key == "sk-secret"

    row = ModelEndpoint.objects.get(name="rows")
    page = f"/admin/gateway_chat/modelendpoint/{row.pk}/change/"
    text = staff.get(page).content.decode()
    assert "streaming\ntools" in text
    assert "sk-secret" not in text
    again = FORM | {
        "targets-INITIAL_FORMS": "1",
        "targets-0-id": str(row.targets.get().pk),
        "targets-0-endpoint": str(row.pk),
        "targets-0-api_key": "",
        "targets-0-weight": "3",
    }
    assert staff.post(page, again).status_code == 302
    assert load()["rows"].targets[0] == Target(
        "http://127.0.0.1:1/v1", "there", "sk-secret", 3
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "echo"),
        ("inference_type", "chatt"),
        ("inference_type", ""),
        ("supports", "stream"),
        ("supports", "streaming\nimages"),
        ("supports", "tools\ntools"),
        ("allow_tenants", "two words"),
        ("allow_principals", "nobody"),
        ("idle_s", "0"),
        ("targets-0-api_key", "${NOT_SET_ANYWHERE}"),
        ("targets-0-api_key", "$NOT_SET_ANYWHERE"),
        ("targets-0-api_key", "x${NOT_SET_ANYWHERE}"),
        ("targets-0-api_key", "sk\n1"),
        ("targets-0-api_key", "clé"),
        ("targets-0-base_url", "http://x/v 1"),
        ("targets-0-base_url", "file:///etc/passwd"),
    ],
)
def test_a_bad_endpoint_is_not_stored(staff, field, value):
    assert staff.post(ADD, FORM | {field: value}).status_code == 200
    assert not ModelEndpoint.objects.exists()


@pytest.mark.parametrize(
    "page", ["usageday", "usagerecord", "modelprice", "modelendpoint"]
)
def test_lists_take_the_same_queries_for_many_rows(
    staff, page, django_assert_max_num_queries
):
    write([ended(principal=f"p{number}") for number in range(50)])
    ModelEndpointFactory.create_batch(20)
    with django_assert_max_num_queries(14):
        assert staff.get(f"/admin/gateway_chat/{page}/").status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    "supports", [["stream"], ["tools", "tools"], [""], [1], [["tools"]], "tools", {}, 5]
)
def test_a_row_supports_nothing_but_the_fixed_values(supports):
    row = ModelEndpoint(name="m", upstream="echo", supports=supports or {"a": 1})
    with pytest.raises(ValidationError, match="supports"):
        row.full_clean()


def test_usage_is_shown_and_never_edited(staff):
    write([ended()])
    shown = UsageRecord.objects.get()
    page = staff.get("/admin/gateway_chat/usagerecord/?q=req-7")
    assert list(page.context["cl"].result_list) == [shown]
    text = staff.get(f"/admin/gateway_chat/usagerecord/{shown.pk}/change/").content
    assert b"req-7" in text
    assert staff.get("/admin/gateway_chat/usagerecord/add/").status_code == 403
    assert staff.post("/admin/gateway_chat/usageday/add/").status_code == 403


# ── Metrics ─────────────────────────────────────────────────────────────────────────


@pytest.mark.django_db
def test_metrics_tell_requests_tokens_costs_and_times(django_assert_num_queries):
    ModelPriceFactory.create(model="small", completion_price=1)
    broken = {"status": 500, "first_chunk_s": None, "duration_s": 200.0}
    write([ended(), ended(**broken, estimated=True)])

    with django_assert_num_queries(2):
        families = list(ChatCollector().collect())

    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    small = ("model", "small")
    tokens = "signpost_chat_tokens_total"
    assert found["signpost_chat_requests_total", small, ("status", "200")] == 1
    assert found["signpost_chat_requests_total", small, ("status", "500")] == 1
    assert found[tokens, ("kind", "prompt"), small] == 18
    assert found[tokens, ("kind", "completion"), small] == 4
    assert found["signpost_chat_cost_total", small] == pytest.approx(22e-6)
    assert found["signpost_chat_estimated_requests_total", small] == 1
    first = "signpost_chat_first_chunk_seconds"
    assert found[f"{first}_bucket", ("le", "0.025"), small] == 1
    assert found[f"{first}_count", small] == 1
    duration = "signpost_chat_duration_seconds"
    assert found[f"{duration}_bucket", ("le", "120"), small] == 1
    assert found[f"{duration}_bucket", ("le", "+Inf"), small] == 2
    assert found[f"{duration}_sum", small] == pytest.approx(201.5)
