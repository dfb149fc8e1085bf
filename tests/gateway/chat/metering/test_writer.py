"""The background writer of usage and denials: in batches, in order, and never lost quietly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from gateway.chat.metering import writer as module
from gateway.chat.metering.usage import CompletedRequest
from gateway.chat.metering.writer import UsageWriter
from gateway.identity import Caller
from gateway.models import PolicyDecision
from tests.gateway.chat.metering.test_usage import ended
from tests.running import PATIENCE_S


async def here(function: Any) -> Any:
    return function()


class Sink:
    """Takes what is written; fails as often as it is told."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.batches: list[list[CompletedRequest]] = []
        self.denials: list[Any] = []

    def write(self, batch: Any) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.batches.append(list(batch))

    def deny(self, **denial: Any) -> None:
        self.denials.append(denial)

    def writer(self) -> UsageWriter:
        return UsageWriter(here, write=self.write, write_denial=self.deny)


def test_the_writer_writes_in_batches_and_at_the_end():
    sink = Sink()

    async def run() -> None:
        writer = sink.writer()
        writer.start()
        for _ in range(2500):
            writer._keep(writer._completed, ended())
        await writer.stop()

    asyncio.run(run())
    assert [len(batch) for batch in sink.batches] == [1000, 1000, 500]


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_what_the_database_does_not_take_now_is_written_later(monkeypatch, error):
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    sink = Sink(error("away"), error("away"))

    async def run() -> None:
        writer = sink.writer()
        writer.start()
        for number in range(3):
            writer._keep(writer._completed, ended(request_id=str(number)))
        async with asyncio.timeout(PATIENCE_S):
            while not sink.batches:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await writer.stop()

    asyncio.run(run())
    assert [batch.request_id for batch in sink.batches[0]] == ["0", "1", "2"]


def test_what_the_database_refuses_does_not_block_what_follows():
    sink = Sink(ValueError("a value it cannot store"))

    async def run() -> int:
        writer = sink.writer()
        writer._keep(writer._completed, ended())
        await writer.flush()
        writer._keep(writer._completed, ended())
        await writer.flush()
        return writer.lost

    assert asyncio.run(run()) == 1
    assert len(sink.batches) == 1


class Picky(Sink):
    """Refuses a whole batch for one value in it."""

    def write(self, batch: Any) -> None:
        if any(item.request_id == "bad" for item in batch):
            raise OverflowError("a value it cannot store")
        super().write(batch)


def test_a_value_that_the_database_refuses_costs_no_other_record(monkeypatch):
    names = ["0", "bad", "2", "3", "bad", "5", "6"]
    sink = Picky()

    async def run() -> int:
        writer = sink.writer()
        for name in names:
            writer._keep(writer._completed, ended(request_id=name))
        assert await writer.flush()
        return writer.lost

    assert asyncio.run(run()) == 2
    written = [item.request_id for batch in sink.batches for item in batch]
    assert written == [name for name in names if name != "bad"]


def test_what_is_left_of_a_batch_keeps_its_order_while_the_database_is_away():
    class AwayInTheMiddle(Picky):
        def write(self, batch: Any) -> None:
            super().write(batch)
            if len(self.batches) == 1:
                self.failures = [OperationalError("away")]

    sink = AwayInTheMiddle()
    names = ["0", "1", "bad", "3", "4", "5", "6"]

    async def run() -> None:
        writer = sink.writer()
        for name in names:
            writer._keep(writer._completed, ended(request_id=name))
        assert not await writer.flush()
        assert await writer.flush()
        assert writer.lost == 1

    asyncio.run(run())
    written = [item.request_id for batch in sink.batches for item in batch]
    assert written == [name for name in names if name != "bad"]


def test_the_oldest_are_dropped_when_the_database_stays_away(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    sink = Sink()

    async def run() -> int:
        writer = sink.writer()
        for number in range(5):
            writer._keep(writer._completed, ended(request_id=str(number)))
        await writer.flush()
        return writer.lost

    assert asyncio.run(run()) == 3
    assert [batch.request_id for batch in sink.batches[0]] == ["3", "4"]


@pytest.mark.django_db
@pytest.mark.spec(
    "gateway", "audit.policy_violation: a policy decision denies an action"
)
def test_a_denial_is_a_policy_decision_that_hides_whether_the_model_exists():
    from gateway.chat.core.http_messages import ChatRequest

    async def body(_: Any) -> bytes:
        return b""

    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {
        "x-request-id": "req-7",
        "traceparent": f"00-{trace}-b7ad6b7169203331-01",
    }
    request = ChatRequest("POST", "/v2/chat/completions", headers, "127.0.0.1", body)
    kept: list[dict[str, Any]] = []
    writer = UsageWriter(here)
    writer.deny(
        caller=Caller("acme", "ada"),
        action="chat.completions",
        model="x" * 1000,
        request=request,
    )
    kept.extend(writer._denials)

    writer._write_denials(kept)

    (decision,) = PolicyDecision.objects.all()
    assert decision.resource.startswith("model:xxx")
    assert (decision.tenant, decision.principal) == ("acme", "ada")
    assert (decision.action, decision.reason) == (
        "chat.completions",
        "not_found_or_forbidden",
    )
    assert (decision.request_id, decision.trace_id) == ("req-7", trace)


def test_stopping_waits_for_a_database_that_hangs_no_longer_than_it_may(monkeypatch):
    monkeypatch.setattr(module, "CLOSING_S", 0.05)

    async def hang(_: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        writer = UsageWriter(hang)
        writer._keep(writer._completed, ended())
        await writer.stop()

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
