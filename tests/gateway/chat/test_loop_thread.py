"""Chat through Django under WSGI, and the event loop of a process that calls its views in threads.

The golden contract is replayed in this way, too. All other tests reach the service past Django.
"""

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections
from django.test import Client

from gateway.chat import loop_thread, runtime
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.chat.models import RequestRecord
from gateway.chat.upstreams import echo
from gateway.models import PolicyDecision
from tests.gateway.chat.factories import ModelEndpointFactory
from tests.gateway.chat.harness import IDENTITY, V2
from tests.running import PATIENCE_S
from webhooks_core.network.client import HttpClient


@pytest.fixture
def process(transactional_db) -> Iterator[Client]:
    """A client of this process, in which no runtime is left over."""
    LOOP_THREAD.stop()
    yield Client(headers=IDENTITY)
    LOOP_THREAD.stop()


def ask(client: Client, text: str = "one two", model: str = "echo") -> Any:
    message = {"role": "user", "content": text}
    body = {"model": model, "messages": [message], "stream": True}
    return client.post(V2, body, content_type="application/json")


@pytest.mark.parametrize("is_read", [False, True])
def test_a_stream_that_is_closed_has_ended(process, is_read):
    response = ask(process, "word " * 5000)
    assert response["Content-Type"] == "text/event-stream"
    assert response["Cache-Control"] == "no-cache"
    assert response["X-Accel-Buffering"] == "no"
    if is_read:
        parts = iter(response)
        next(parts), next(parts)
    response.close()
    LOOP_THREAD.stop()  # what is not written yet is
    assert RequestRecord.objects.get().status == 499


def test_a_request_that_runs_when_its_process_stops_is_recorded(process, monkeypatch):
    called, statuses = threading.Event(), []

    async def sleep(_: float) -> None:
        called.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.2)  # the stop waits for its end, too

    def wait() -> None:
        statuses.append(ask(process).status_code)
        connections.close_all()

    monkeypatch.setattr(echo, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(loop_thread, "CANCELLED_S", PATIENCE_S)
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert called.wait(PATIENCE_S)
    LOOP_THREAD.stop()
    assert RequestRecord.objects.get().status == 499
    waiting.join(PATIENCE_S)
    assert statuses == [500]


def test_one_loop_serves_all_requests_of_a_process(process):
    before = set(threading.enumerate())
    for _ in range(3):
        assert b"two" in ask(process).getvalue()
    names = [item.name for item in set(threading.enumerate()) - before]
    assert names.count("chat-loop") == 1
    LOOP_THREAD.stop()
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("chat-")]
    assert RequestRecord.objects.count() == 3
    assert ask(process).status_code == 200  # a process may go on


@pytest.mark.spec(
    "gateway", "audit.policy_violation: a policy decision denies an action"
)
def test_a_denial_is_a_policy_decision_that_hides_whether_the_model_exists(process):
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {
        "X-Request-Id": "req-7",
        "traceparent": f"00-{trace}-b7ad6b7169203331-01",
    }
    body = {"model": "x" * 1000}
    response = process.post(V2, body, content_type="application/json", headers=headers)
    assert response.status_code == 404
    LOOP_THREAD.stop()
    (decision,) = PolicyDecision.objects.all()
    assert decision.resource.startswith("model:xxx")
    assert (decision.tenant, decision.principal) == ("acme", "ada")
    assert decision.action == "chat.completions"
    assert decision.reason == "not_found_or_forbidden"
    assert (decision.request_id, decision.trace_id) == ("req-7", trace)


def test_a_loop_that_ends_closes_the_client_of_its_one_runtime(monkeypatch):
    closed: list[HttpClient] = []

    async def close(client: HttpClient) -> None:
        closed.append(client)

    monkeypatch.setattr(HttpClient, "close", close)

    async def started() -> runtime.Runtime:
        first, second = runtime.current(), runtime.current()
        assert first is second
        return first

    earlier = LOOP_THREAD.submit(started()).result(PATIENCE_S)
    LOOP_THREAD.stop()
    assert closed == [earlier.client]


# ── What Django reads in its own way ────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"X-Forwarded-For": "127.0.0.1"}, 401), ({"Content-Encoding": "gzip"}, 415)],
)
def test_requests_of_proxies_and_compressed_ones_are_refused(process, headers, status):
    body = {"model": "echo"}
    answer = process.post(V2, body, content_type="application/json", headers=headers)
    assert (answer.status_code, list(answer.json())) == (status, ["detail"])


def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(process):
    largest = b'{"model": "echo"}'.ljust(20 * 1024 * 1024)
    for body, status in ((largest, 200), (largest + b" ", 413)):
        answer = process.post(V2, body, content_type="application/json")
        assert answer.status_code == status


def test_a_model_is_described_whatever_its_name_holds(process):
    names = ("meta-llama/Llama-3.1-8B", "/leading", "trailing/", "50%25", "a?b#c")
    for name in names:
        ModelEndpointFactory.create(name=name)
    for name in names:
        answer = process.get("/v1/models/" + quote(name, safe=""))
        assert (answer.status_code, answer.json()["id"]) == (200, name)


@pytest.mark.parametrize(
    ("path", "members"),
    [
        ("/v1/messages/batches", ["type", "error"]),
        ("/v1/messages/", ["type", "error"]),
        ("/v1/responses/resp_1", ["error"]),
        ("/v1/chat/nothing", ["error"]),
        ("/chat/nothing", ["detail"]),
    ],
)
def test_an_unknown_address_answers_in_the_shape_of_its_api(process, path, members):
    answer = process.post(path)
    assert (answer.status_code, list(answer.json())) == (404, members)
