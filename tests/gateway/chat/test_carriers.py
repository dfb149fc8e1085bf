"""Chat through Django under WSGI: a dozen cases of what it does in its own way.

All other tests reach the service past Django, as the site's server does.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connections
from django.test import Client

from gateway.chat import loop_thread, runtime
from gateway.chat.loop_thread import LOOP_THREAD, LoopThread
from gateway.chat.models import RequestRecord
from gateway.chat.targets import Router
from gateway.chat.upstreams import echo
from gateway.configuration.shapes import Target
from gateway.models import PolicyDecision
from tests.gateway.chat.apis.messages.conftest import V1_MESSAGES
from tests.gateway.chat.harness import (
    IDENTITY,
    INTERNAL,
    NOT_FOUND,
    PATHS,
    REQUEST_ID,
    SHORT_CUT,
    UPSTREAM,
    V1,
    V2,
    WSGI,
    Gateway,
    ask_models,
    raw_request,
    run_in,
    running,
    status_and_detail,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    NEVER,
    STREAM,
    WHOLE_STREAM,
    answers,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
    named,
    sends_events,
    stopped,
)
from tests.running import PATIENCE_S

through_django = pytest.mark.parametrize("way", [WSGI], indirect=True)


@through_django
def test_a_completion_comes_back_and_is_recorded(gateway, upstream):
    upstream.script = answers(COMPLETION)
    response = gateway.post(headers=REQUEST_ID)
    assert (response.status_code, response.json()) == (
        200,
        {**COMPLETION, "model": "small"},
    )
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Request-Id"] == "req-7"
    context = gateway.recorded()
    assert (context.caller.principal, context.usage.prompt_tokens) == ("ada", 9)


@through_django
@PATHS
def test_a_stream_comes_chunk_by_chunk_with_its_headers(gateway, upstream, path):
    has_arrived = asyncio.Event()
    upstream.script = sends(STREAM[0], has_arrived, *WHOLE_STREAM[1:])
    with gateway.opened(path) as response:
        lines = response.iter_lines(1)
        assert b"Hel" in next(lines)
        upstream.loop.set(has_arrived)
        assert (b"data: [DONE]" in list(lines)) == (path == V1)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"


@through_django
def test_requests_that_are_refused_never_reach_the_upstream(gateway, upstream):
    for headers, status in (
        ({"X-Forwarded-For": "127.0.0.1"}, 401),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
    ):
        response = gateway.post(headers={**REQUEST_ID, **headers})
        assert status_and_detail(response)[0] == status
    no_model = gateway.post(b"{}", headers=REQUEST_ID)
    assert status_and_detail(no_model) == (400, "model: this field is required.")
    absent = gateway.post(model="absent", headers=REQUEST_ID)
    assert status_and_detail(absent) == (404, NOT_FOUND)
    assert ask_models(gateway, "", method="POST").headers["Allow"] == "GET, HEAD"
    assert upstream.requests == []


@pytest.mark.parametrize("way", [SHORT_CUT, WSGI], indirect=True)
def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(gateway, upstream):
    upstream.script = answers(COMPLETION)
    largest = b'{"model": "small"}'.ljust(20 * 1024 * 1024)
    assert gateway.post(largest).status_code == 200
    too_large = gateway.post(largest + b" ", headers=REQUEST_ID)
    assert status_and_detail(too_large)[0] == 413


@through_django
def test_failures_of_the_upstream_are_told_by_the_tables(gateway, upstream):
    upstream.script = answers({}, 503)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (500, UPSTREAM)
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)
    upstream.script = answers({"error": {"message": "no"}}, 400)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (400, "no")
    upstream.script = sends(*STREAM[:2], None)
    *chunks, last = gateway.stream(headers=REQUEST_ID)
    assert text_of(chunks) == "Hello"
    assert last["error"]["content"]["error"] == UPSTREAM


@through_django
def test_an_unforeseen_failure_tells_nothing_and_is_recorded(gateway, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("a bug with a secret")

    monkeypatch.setattr(Router, "order", fail)
    response = gateway.post(headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)
    assert gateway.recorded().status == 500


@through_django
def test_a_client_that_leaves_a_stream_ends_the_upstreams_call(gateway, upstream):
    chunks = [part for _ in range(500) for part in (STREAM[0], 0.02)]
    upstream.script = sends(*chunks, NEVER)
    with gateway.connected(raw_request(stream=True)) as client:
        while b"Hel" not in client.recv(10_000):
            pass
    assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.recorded().status == 499


@through_django
def test_messages_come_back_in_anthropics_shape(gateway, upstream):
    version = {"anthropic-version": "2023-06-01"}
    target = Target(upstream.url, "upstream-model", "sk-ant-secret")
    gateway.declare(name="claude", upstream="anthropic", targets=(target,))
    upstream.script = answers(MESSAGE, request_id="req_1")
    response = gateway.post(path=V1_MESSAGES, model="claude", headers=version)
    assert response.json() == {**MESSAGE, "model": "claude"}
    assert response.headers["request-id"] == "req_1"
    upstream.script = sends_events(*TEXT_STREAM, *stopped("end_turn"))
    response = gateway.post(path=V1_MESSAGES, model="claude", stream=True)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.content.endswith(named({"type": "message_stop"}))
    counted = gateway.post(path=f"{V1_MESSAGES}/count_tokens")
    assert counted.json() == {"input_tokens": 6, "estimated": True}
    error = {"type": "overloaded_error", "message": "Overloaded"}
    overloaded = {"type": "error", "error": error}
    upstream.script = answers(overloaded, 529, x_should_retry="false")
    refused = gateway.post(path=V1_MESSAGES, model="claude")
    assert (refused.status_code, refused.json()) == (529, overloaded)
    assert refused.headers["x-should-retry"] == "false"


@through_django
def test_a_model_is_described_whatever_its_name_holds(gateway):
    for name in ("meta-llama/Llama-3.1-8B", "/leading", "trailing/", "50%25", "a?b#c"):
        gateway.declare(name=name)
        response = ask_models(gateway, "/" + quote(name, safe=""))
        assert (response.status_code, response.json()["id"]) == (200, name)
    assert ask_models(gateway, "/absent", method="HEAD").status_code == 404


# ── The runtime of a process ────────────────────────────────────────────────────────


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


# Python 3.12 warns of every fork of a process that has threads.
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_a_loop_of_its_own():
    thread = LoopThread()
    loop = thread.loop

    async def running_loop() -> int:
        return id(asyncio.get_running_loop())

    if (child := os.fork()) == 0:
        is_new = thread.loop is not loop
        response = thread.submit(running_loop()).result(PATIENCE_S)
        os._exit(0 if is_new and response == id(thread.loop) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert thread.submit(running_loop()).result(PATIENCE_S) == id(loop)
    thread.stop()


@through_django
def test_the_client_of_an_earlier_runtime_is_closed_first(loops, upstream, way):
    async def started() -> runtime.Runtime:
        first, second = runtime.current(), runtime.current()
        assert first is second
        return first

    earlier = run_in(LOOP_THREAD.loop, started())
    with running(Gateway(loops[0], upstream), way):
        assert earlier.client.closed


ANTHROPIC, OPENAI, CONTRACT = ("type", "error"), ("error",), ("detail",)


@pytest.mark.parametrize(
    ("method", "path", "status", "members"),
    [
        ("GET", "/v1/messages", 405, ANTHROPIC),
        ("POST", "/v1/messages/batches", 404, ANTHROPIC),
        ("POST", "/v1/messages/", 404, ANTHROPIC),
        ("DELETE", "/v1/messages/count_tokens", 405, ANTHROPIC),
        ("GET", "/v1/responses/resp_1", 404, OPENAI),
        ("DELETE", "/v1/responses", 405, OPENAI),
        ("GET", "/v1/models/absent", 404, OPENAI),
        ("DELETE", "/v1/models/absent", 405, OPENAI),
        ("GET", "/v1/embeddings", 405, OPENAI),
        ("POST", "/v1/chat/nothing", 404, OPENAI),
        ("POST", "/v2/nothing", 404, CONTRACT),
        ("POST", "/chat/nothing", 404, CONTRACT),
    ],
)
def test_an_unknown_address_or_method_answers_in_the_shape_of_its_api(
    process, method, path, status, members
):
    answer = process.generic(method, path)
    assert answer.status_code == status
    assert tuple(answer.json()) == members
