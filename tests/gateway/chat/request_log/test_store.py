"""The rows of the request log: what is written, dropped and removed for its age."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from gateway.chat.metering import usage, writer
from gateway.chat.metering.writer import UsageWriter
from gateway.chat.metrics import ChatCollector
from gateway.chat.models import LoggedRequest
from gateway.chat.request_log import store
from gateway.chat.request_log.entry import EndedRequest
from gateway.identity import Caller
from tests.gateway.chat.factories import LoggedRequestFactory
from tests.gateway.chat.metering.test_usage import ended

ADA = Caller("acme", "ada")
pytestmark = pytest.mark.django_db


def entry(**fields: Any) -> EndedRequest:
    values: dict[str, Any] = {
        "operation": "chat.completions",
        "model": "small",
        "prompt": {
            "messages": [{"role": "user", "content": 'NUL \0, half \ud83d, "quote"'}]
        },
        "tools": ["tide"],
        "answer": [{"text": "Ahoi\n"}],
        "error": "a\0b",
        "is_cut": False,
    }
    return EndedRequest(ended(), **values | fields)


def test_a_row_holds_what_no_database_stores_as_it_is():
    store.write([entry(), entry(model="other")])
    row = LoggedRequest.objects.get(model="small")
    assert json.loads(row.prompt) == entry().prompt
    assert row.public_id.startswith(store.PREFIX)
    assert row.error == "a\ufffdb"
    assert row.excerpt == 'NUL \ufffd, half ?, "quote"'
    assert (row.answered_by, row.prompt_tokens) == ("small", 9)


@pytest.mark.parametrize("text", ['"quote"', "ahoi\n", "AHOI", "a\ufffdb"])
def test_a_text_is_found_as_it_was_written(text: str):
    store.write([entry(), entry(prompt={}, answer=[], error="")])
    wanted = store.LogFilter(text=text)
    (row,), cursor = store.search(ADA, wanted, before=None, size=5)
    assert (row.model, cursor) == ("small", "")


def test_a_search_goes_on_behind_what_it_has_searched(monkeypatch):
    monkeypatch.setattr(store, "SEARCHED", 2)
    LoggedRequestFactory.create(prompt='"needle"')
    LoggedRequestFactory.create_batch(3)
    wanted, pages, cursor = store.LogFilter(text="needle"), [], None
    for _ in range(2):
        before = None if cursor is None else int(cursor, 16)
        rows, cursor = store.search(ADA, wanted, before=before, size=5)
        pages.append(len(rows))
    assert (pages, cursor) == ([0, 1], "")


def test_a_full_queue_drops_and_counts(monkeypatch):
    monkeypatch.setattr(writer, "LOGS_KEPT", 2)

    async def here(function: Any) -> None:
        written.append(function)

    written: list[Any] = []

    async def fill() -> None:
        usage_writer = UsageWriter(here)
        for _ in range(5):
            usage_writer.log(entry())
        assert await usage_writer.flush()

    asyncio.run(fill())
    for function in written:
        function()
    assert LoggedRequest.objects.count() == 2
    samples = [s for family in ChatCollector().collect() for s in family.samples]
    (dropped,) = [s for s in samples if s.name == "signpost_chat_log_dropped_total"]
    assert (dropped.labels, dropped.value) == ({"model": "small"}, 3)


def test_old_requests_are_removed(settings):
    LoggedRequestFactory.create(created_at=timezone.now() - timedelta(days=31))
    kept = LoggedRequestFactory.create(created_at=timezone.now() - timedelta(days=29))
    usage.prune()
    assert list(LoggedRequest.objects.all()) == [kept]
