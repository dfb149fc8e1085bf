"""Chat as views of Django's own handlers, with the service that serves them in a process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from django.test import AsyncClient, Client

from gateway.chat import runtime
from gateway.chat.loop_thread import LOOP_THREAD, LoopThread
from gateway.chat.models import UsageRecord
from tests.gateway.chat.harness import IDENTITY, events_of
from tests.running import PATIENCE_S

PATH = "/v2/chat/completions"
MESSAGES = [{"role": "user", "content": "one two"}]


@pytest.fixture(autouse=True)
def stopped(transactional_db) -> Iterator[None]:
    LOOP_THREAD.stop()
    yield
    LOOP_THREAD.stop()


def post(**fields: Any) -> Any:
    body = orjson.dumps({"model": "echo", "messages": MESSAGES, **fields})
    client = Client(headers=IDENTITY)
    return client.post(PATH, body, content_type="application/json")


def post_async(**fields: Any) -> tuple[Any, bytes]:
    body = orjson.dumps({"model": "echo", "messages": MESSAGES, **fields})

    async def work() -> tuple[Any, bytes]:
        response: Any = await AsyncClient().post(
            PATH, body, content_type="application/json", headers=IDENTITY
        )
        if not response.streaming:
            return response, response.content
        parts = [part async for part in response.streaming_content]
        await asyncio.to_thread(response.close)
        return response, b"".join(parts)

    return asyncio.run(work())


def post_sync(**fields: Any) -> tuple[Any, bytes]:
    response = post(**fields)
    return response, response.getvalue()


@pytest.mark.parametrize("send", [post_sync, post_async])
def test_chat_is_served_without_the_short_cut(send):
    response, body = send()
    stream, events = send(stream=True)
    large, _ = send(model="x" * 21_000_000)
    absent, detail = send(model="absent")

    assert orjson.loads(body)["choices"][0]["message"]["content"] == "one two"
    assert stream["Content-Type"] == "text/event-stream"
    assert events_of(events)[-1]["usage"]["completion_tokens"] == 2
    assert (absent.status_code, large.status_code) == (404, 413)
    assert orjson.loads(detail) == {
        "detail": "The specified endpoint could not be found."
    }
    assert all(item["X-Request-Id"] for item in (response, stream, large, absent))
    LOOP_THREAD.stop()  # what is not written yet is
    assert UsageRecord.objects.count() == 2


def test_a_stream_that_is_closed_has_ended():
    response = post(stream=True, messages=[{"role": "user", "content": "word " * 5000}])
    parts = iter(response)
    next(parts), next(parts)

    response.close()
    LOOP_THREAD.stop()

    assert UsageRecord.objects.get().status == 499


def test_a_stream_that_nobody_reads_has_ended_when_it_is_closed():
    post(stream=True).close()
    LOOP_THREAD.stop()
    assert UsageRecord.objects.get().status == 499


def test_one_loop_serves_all_requests_of_a_process():
    before = set(threading.enumerate())
    assert [post().status_code for _ in range(3)] == [200] * 3
    names = [item.name for item in set(threading.enumerate()) - before]
    assert names.count("chat-loop") == 1
    LOOP_THREAD.stop()
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("chat-")]
    assert post().status_code == 200  # a process may go on


# Python 3.12 warns of every fork of a process that has threads.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own():
    thread = LoopThread()
    loop = thread.loop

    async def running() -> int:
        return id(asyncio.get_running_loop())

    if (child := os.fork()) == 0:
        is_new = thread.loop is not loop
        response = thread.submit(running()).result(PATIENCE_S)
        os._exit(0 if is_new and response == id(thread.loop) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert thread.submit(running()).result(PATIENCE_S) == id(loop)
    thread.stop()


def test_the_runtime_of_a_loop_is_one():
    async def runtimes() -> bool:
        first, second = runtime.current(), runtime.current()
        await runtime.stop()
        await runtime.stop()
        return first is second

    assert asyncio.run(runtimes())
