"""The background writer of usage and denials: in batches, in order, and never lost quietly."""

import asyncio
from collections.abc import Iterable
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import InterfaceError, OperationalError
from structlog.testing import capture_logs

from gateway.chat.apis.openai.chat import CHAT
from gateway.chat.context import ChatContext
from gateway.chat.metering import background_writer as module
from gateway.chat.metering.background_writer import UsageWriter
from gateway.chat.request import ModelRequest
from gateway.configuration.shapes import ModelEntry
from gateway.identity import Caller
from tests.running import PATIENCE_S

ADA = Caller("acme", "ada")
OUTAGES = pytest.mark.parametrize("outage", [OperationalError, InterfaceError])


async def here(function: Any) -> Any:
    return function()


class Sink:
    """Takes what is written; fails as often as it is told, and always for some ids."""

    def __init__(self, *failures: Exception, bad: str = "") -> None:
        self.failures, self.bad = list(failures), bad
        self.batches: list[list[str]] = []

    def write(self, batch: Iterable[ChatContext]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        ids = [request.request_id for request in batch]
        if self.bad in ids:
            raise OverflowError("a value it cannot store")
        self.batches.append(ids)

    @property
    def written(self) -> list[str]:
        return [request_id for batch in self.batches for request_id in batch]

    def writer(self) -> UsageWriter:
        return UsageWriter(here, write=self.write)


def context(request_id: str) -> ChatContext:
    entry, request = ModelEntry("small", "echo", ()), ModelRequest("small", False, {})
    return ChatContext(ADA, entry, request, request_id, CHAT, status=200)


def record(writer: UsageWriter, *ids: str) -> None:
    """Give a writer the records of requests with these ids."""
    for request_id in ids:
        writer.record(context(request_id))


def flushed(sink: Sink, *batches: Iterable[str]) -> tuple[list[bool], int]:
    """Give a writer batches of ids, with a flush after each; return what each said, and the losses."""

    async def run() -> tuple[list[bool], int]:
        writer, results = sink.writer(), []
        for ids in batches:
            record(writer, *ids)
            results.append(await writer.flush())
        return results, writer.lost

    return asyncio.run(run())


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _quick(monkeypatch) -> None:
    monkeypatch.setattr(module, "EVERY_S", 0.0)
    monkeypatch.setattr(module, "RETRY_S", 0.01)


def test_the_writer_writes_in_batches_and_at_the_end():
    sink = Sink()

    async def run() -> None:
        writer = sink.writer()
        writer.start()
        record(writer, *map(str, range(2500)))
        await writer.stop()

    asyncio.run(run())
    assert [len(batch) for batch in sink.batches] == [1000, 1000, 500]


def test_what_comes_during_a_write_waits_for_the_next():
    sink = Sink()

    def write(batch: Iterable[ChatContext]) -> None:
        sink.write(batch)
        record(writer, "later")

    writer = UsageWriter(here, write=write)
    record(writer, "first")
    asyncio.run(writer.flush())
    assert sink.batches == [["first"]]
    asyncio.run(writer.flush())
    assert sink.batches == [["first"], ["later"]]


@OUTAGES
def test_what_the_database_does_not_take_now_is_written_later(outage):
    sink = Sink(outage("away"), outage("away"))

    async def run() -> None:
        writer = sink.writer()
        writer.start()
        record(writer, "0", "1", "2")
        await until(lambda: sink.batches)
        await writer.stop()

    asyncio.run(run())
    assert sink.batches == [["0", "1", "2"]]


def test_a_value_that_the_database_refuses_costs_no_other_record():
    sink = Sink(bad="bad")
    ids = "0", "bad", "2", "3", "bad", "5", "6"
    assert flushed(sink, ids, "7") == ([True, True], 2)
    assert sink.written == ["0", "2", "3", "5", "6", "7"]


def test_what_is_left_of_a_batch_keeps_its_order_while_the_database_is_away():
    class AwayInTheMiddle(Sink):
        def write(self, batch: Iterable[ChatContext]) -> None:
            super().write(batch)
            if len(self.batches) == 1:
                self.failures = [OperationalError("away")]

    sink = AwayInTheMiddle(bad="bad")
    ids = "0", "1", "bad", "3", "4", "5", "6"
    assert flushed(sink, ids, "") == ([False, True], 1)
    assert sink.written == ["0", "1", "3", "4", "5", "6"]


def test_the_oldest_are_dropped_when_the_database_stays_away(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 2)
    sink = Sink()
    assert flushed(sink, "01234") == ([True], 3)
    assert sink.batches == [["3", "4"]]


def test_stopping_waits_for_a_database_that_hangs_no_longer_than_it_may(monkeypatch):
    monkeypatch.setattr(module, "CLOSING_S", 0.05)

    async def hang(_: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        writer = UsageWriter(hang)
        record(writer, "0", "1")
        await writer.stop()

    with capture_logs() as lines:
        asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert [(line["event"], line["count"]) for line in lines] == [("usage lost", 2)]


def test_a_denial_does_not_wait_until_a_batch_of_requests_has_grown(monkeypatch):
    monkeypatch.setattr(module, "EVERY_S", 2 * PATIENCE_S)
    calls: list[Any] = []

    async def in_thread(function: Any) -> None:
        calls.append(function)

    async def run() -> None:
        writer = UsageWriter(in_thread)
        writer.start()
        record(writer, "0")
        await asyncio.sleep(0)
        assert not calls
        writer.deny(context("1"), "not_found_or_forbidden")
        await until(lambda: len(calls) == 2)
        await writer.stop()

    asyncio.run(run())


def test_prompts_and_answers_are_written_before_they_are_too_many(monkeypatch):
    monkeypatch.setattr(module, "EVERY_S", 2 * PATIENCE_S)
    monkeypatch.setattr(module, "TEXTS_KEPT", 5 * 1000)
    sink, texts = Sink(), Mock(size=1000)

    async def run() -> None:
        writer = sink.writer()
        writer.start()
        for number in range(3):
            each = context(str(number))
            each.log = texts
            writer.record(each)
        large = context("3")
        large.log = Mock(size=5 * 1000)
        writer.record(large)
        assert large.log is None
        await until(lambda: sink.batches)
        assert each.log is texts
        await writer.stop()

    asyncio.run(run())
    assert sink.batches == [["0", "1", "2", "3"]]
