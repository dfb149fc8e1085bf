"""Model endpoints of the admin and the configuration, and their pages."""

import asyncio
from typing import Any

import pytest
from django.db import Error, InterfaceError, OperationalError

from gateway.chat import model_registry
from gateway.chat.metering.usage import write
from gateway.chat.metrics import ChatCollector
from gateway.chat.model_registry import ModelRegistry, load
from gateway.configuration.shapes import ModelEntry
from tests.gateway.chat.factories import ModelEndpointFactory, ModelPriceFactory, ended
from webhooks_core.errors import UnavailableError


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
def test_loading_takes_one_query_however_many_there_are(django_assert_num_queries):
    ModelEndpointFactory.create_batch(5)
    with django_assert_num_queries(1):
        load()


class Database:
    """Stands for load(): counts calls, is away or hangs when told."""

    def __init__(self) -> None:
        self.calls, self.names = 0, {"a"}
        self.failure: type[Error] | None = None
        self.hangs = False
        self.now = 0.0
        clock = lambda: self.now  # noqa: E731
        self.registry = ModelRegistry(self.in_thread, load=self.load, clock=clock)

    def load(self) -> Any:
        self.calls += 1
        if self.failure is not None:
            raise self.failure
        return {name: ModelEntry(name, "echo", ()) for name in self.names}

    async def in_thread(self, function: Any) -> Any:
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        return function()

    async def known(self) -> set[str]:
        return set(await self.registry.endpoints())


def test_the_endpoints_are_loaded_once_for_many_and_again_when_they_are_old():
    database = Database()

    async def run() -> None:
        await asyncio.gather(*(database.known() for _ in range(5)))
        assert database.calls == 1
        database.now += (
            model_registry.FRESH_S + 0.1
        )  # served as they are, loaded beside
        database.names = {"a", "b"}
        assert await database.known() == {"a"}
        await asyncio.sleep(0.01)
        assert await database.known() == {"a", "b"}
        assert database.calls == 2
        database.now += model_registry.STALE_S + 0.1  # too old: waited for
        database.names = {"b"}
        assert await database.known() == {"b"}
        assert database.calls == 3

    asyncio.run(run())


@pytest.mark.parametrize("failure", [OperationalError, InterfaceError, TimeoutError])
def test_the_endpoints_outlive_a_short_outage_of_the_database(monkeypatch, failure):
    database = Database()

    async def run() -> None:
        await database.known()
        if failure is TimeoutError:
            monkeypatch.setattr(model_registry, "WAIT_S", 0.0)
            database.hangs = True
        else:
            database.failure = failure
        database.now += model_registry.OUTAGE_S - 1
        for _ in range(3):
            assert await database.known() == {"a"}
        database.now += 2
        with pytest.raises(UnavailableError):
            await database.known()

    asyncio.run(run())


# ── Metrics ─────────────────────────────────────────────────────────────────────────


@pytest.mark.django_db
def test_metrics_tell_requests_tokens_costs_and_times(django_assert_num_queries):
    ModelPriceFactory.create(model="small", completion_price=1)
    broken: dict[str, Any] = {"status": 500, "first_chunk_s": None, "duration_s": 200.0}
    write([ended(), ended(**broken, is_estimated=True)])

    with django_assert_num_queries(2):
        families = list(ChatCollector().collect())

    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    small = ("model", "small")
    tokens = "gateway_chat_tokens_total"
    assert found["gateway_chat_requests_total", small, ("status", "200")] == 1
    assert found["gateway_chat_requests_total", small, ("status", "500")] == 1
    assert found[tokens, ("kind", "prompt"), small] == 18
    assert found[tokens, ("kind", "completion"), small] == 4
    assert found["gateway_chat_cost_total", small] == pytest.approx(22e-6)
    assert found["gateway_chat_estimated_requests_total", small] == 1
    first = "gateway_chat_first_chunk_seconds"
    assert found[f"{first}_bucket", ("le", "0.025"), small] == 1
    assert found[f"{first}_count", small] == 1
    duration = "gateway_chat_duration_seconds"
    assert found[f"{duration}_bucket", ("le", "120"), small] == 1
    assert found[f"{duration}_bucket", ("le", "+Inf"), small] == 2
    assert found[f"{duration}_sum", small] == pytest.approx(201.5)
