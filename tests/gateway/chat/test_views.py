"""Chat as a view of Django's own handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import pytest
from django.core.handlers.asgi import ASGIHandler
from django.test import AsyncClient, Client

from gateway.chat import runtime
from gateway.chat.models import UsageRecord
from tests.gateway.chat.harness import IDENTITY, events_of

PATH = "/v2/chat/completions"
SAID = [{"role": "user", "content": "one two"}]


async def post(**fields: Any) -> tuple[int, Any, bytes]:
    answer: Any = await AsyncClient().post(
        PATH,
        orjson.dumps({"model": "echo", "messages": SAID, **fields}),
        content_type="application/json",
        headers=IDENTITY,
    )
    if not answer.streaming:
        return answer.status_code, answer.headers, answer.content
    parts = [part async for part in answer.streaming_content]
    return answer.status_code, answer.headers, b"".join(parts)


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    async def with_runtime() -> Any:
        try:
            return await work()
        finally:
            await runtime.stop()

    return asyncio.run(with_runtime())


@pytest.mark.django_db(transaction=True)
def test_the_view_answers_as_the_asgi_application_does():
    async def work() -> list[Any]:
        return [
            await post(),
            await post(stream=True),
            await post(model="absent"),
            await post(model="x" * 21_000_000),
        ]

    whole, stream, absent, large = run(work)

    assert orjson.loads(whole[2])["choices"][0]["message"]["content"] == "one two"
    assert stream[1]["Content-Type"] == "text/event-stream"
    assert events_of(stream[2])[-1]["usage"]["completion_tokens"] == 2
    assert absent[0] == 404
    assert orjson.loads(absent[2]) == {
        "detail": "The specified endpoint could not be found."
    }
    assert large[0] == 413
    assert all("X-Request-Id" in it[1] for it in (whole, stream, absent, large))
    assert UsageRecord.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "status"), [("echo", 200), ("no/such:model.1", 404)])
def test_the_view_describes_models(name, status):
    async def work() -> Any:
        return await AsyncClient().get(f"/v1/models/{name}", headers=IDENTITY)

    answer = run(work)
    assert answer.status_code == status
    told = answer.json()
    assert told["id"] == name if status == 200 else told["error"]["param"] == "model"


@pytest.mark.django_db(transaction=True)
def test_a_client_that_leaves_djangos_own_handler_ends_its_stream():
    said = [{"role": "user", "content": "word " * 5000}]
    body = orjson.dumps({"model": "echo", "stream": True, "messages": said})
    names = {"host": "localhost", "content-type": "application/json", **IDENTITY}
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in names.items()],
        "client": ("127.0.0.1", 1),
    }

    async def work() -> int:
        asked = [{"type": "http.request", "body": body, "more_body": False}]
        has_read = asyncio.Event()

        async def receive() -> Any:
            if asked:
                return asked.pop()
            await has_read.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if b"word" in message.get("body", b""):
                has_read.set()

        async with asyncio.timeout(30):
            await ASGIHandler()(scope, receive, send)
        return (await runtime.start()).service.limits.running

    assert run(work) == 0
    assert UsageRecord.objects.get().status == 499


def test_under_wsgi_chat_is_not_to_be_had():
    answer = Client(headers=IDENTITY).post(PATH, {}, content_type="application/json")
    assert answer.status_code == 503
    assert set(answer.json()) == {"detail"}
