"""Chat through Django's own handlers: what each of them does in a way of its own.

All other tests of the chat reach the service past Django, as the site's server does.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import socket
from urllib.parse import quote

import pytest

from gateway.chat import runtime
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.chat.routing import Router
from gateway.identity import Caller
from tests.gateway.chat.core.test_errors import (
    INTERNAL,
    NOT_FOUND,
    REQUEST_ID,
    UPSTREAM,
    status_and_detail,
)
from tests.gateway.chat.harness import (
    ASGI,
    IDENTITY,
    WSGI,
    Gateway,
    run_in,
    running,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    WHOLE_STREAM,
    answers,
    sends,
)
from tests.gateway.chat.streaming.test_leaving import raw_request
from tests.gateway.chat.test_faults import nothing_is_left, text_of
from tests.gateway.chat.test_models import NAMES, ask_models, described

pytestmark = pytest.mark.parametrize("way", [ASGI, WSGI], indirect=True)


def test_a_completion_comes_back_and_is_recorded(gateway, upstream):
    upstream.script = answers(COMPLETION)
    response = gateway.post(headers=REQUEST_ID)
    assert (response.status_code, response.json()) == (
        200,
        {**COMPLETION, "model": "small"},
    )
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Request-Id"] == "req-7"
    (context,) = gateway.kept.ended
    assert (context.caller.principal, context.usage.prompt_tokens) == ("ada", 9)


def test_a_stream_comes_chunk_by_chunk_with_its_headers(gateway, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    response = gateway.post(stream=True)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    assert response.headers["X-Accel-Buffering"] == "no"
    assert text_of(gateway.stream()) == "Hello"
    assert gateway.stream(path="/v1/chat/completions")[-1] == "[DONE]"


@pytest.mark.parametrize(("budget", "status"), [("per_key", 429), ("in_all", 503)])
def test_a_body_counts_in_the_budget_until_its_request_ends(
    gateway, upstream, budget, status
):
    setattr(gateway.limits.bodies, budget, 1_000_000)
    held = gateway.limits.body_of(Caller("acme", "ada"))
    held.add(900_000)
    refused = gateway.post(user="x" * 300_000)
    held.release()
    assert (refused.status_code, "Retry-After" in refused.headers) == (status, True)
    upstream.script = answers(COMPLETION)
    assert gateway.post(user="x" * 300_000).status_code == 200
    assert gateway.limits.bodies.held == 0


def test_a_chunk_is_not_held_back_for_the_next(gateway, upstream):
    has_arrived = asyncio.Event()
    upstream.script = sends(STREAM[0], has_arrived, *STREAM[1:])
    with gateway.events() as events:
        first = next(events)
        upstream.loop.set(has_arrived)
        assert text_of([first, *events]) == "Hello"


def test_who_is_not_known_is_refused(gateway, upstream):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
    for names in ([], ["X-Tenant-Id"], [*IDENTITY, "X-Tenant-Id"]):
        connection.putrequest("POST", "/v2/chat/completions")
        for name in names:
            connection.putheader(name, IDENTITY[name])
        connection.putheader("Content-Length", "2")
        connection.endheaders(b"{}")
        response = connection.getresponse()
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        connection.close()
    assert upstream.requests == []


def test_other_methods_and_media_types_are_refused(gateway, upstream):
    assert ask_models(gateway, "", method="POST").headers["Allow"] == "GET, HEAD"
    text = gateway.post(b"x", headers={**REQUEST_ID, "Content-Type": "text/plain"})
    assert status_and_detail(text)[0] == 415
    packed = gzip.compress(b'{"model": "small"}')
    assert gateway.post(packed, headers={"Content-Encoding": "gzip"}).status_code == 415
    assert upstream.requests == []


def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(gateway, upstream):
    upstream.script = answers(COMPLETION)
    largest = b'{"model": "small"}'.ljust(20 * 1024 * 1024)
    assert gateway.post(largest).status_code == 200
    too_large = gateway.post(largest + b" ", headers=REQUEST_ID)
    assert status_and_detail(too_large)[0] == 413


def test_bad_requests_say_what_is_wrong(gateway, upstream):
    no_model = gateway.post(b"{}", headers=REQUEST_ID)
    assert status_and_detail(no_model) == (400, "model: this field is required.")
    no_json = gateway.post(b"{", headers=REQUEST_ID)
    assert status_and_detail(no_json)[0] == 400
    absent = gateway.post(model="absent", headers=REQUEST_ID)
    assert status_and_detail(absent) == (404, NOT_FOUND)
    assert upstream.requests == []


def test_failures_of_the_upstream_are_told_by_the_tables(gateway, upstream):
    upstream.script = answers({}, 503)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (500, UPSTREAM)
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)
    upstream.script = answers({"error": {"message": "no"}}, 400)
    assert status_and_detail(gateway.post(headers=REQUEST_ID)) == (400, "no")


def test_a_stream_that_breaks_after_some_chunks_ends_with_an_error_chunk(
    gateway, upstream
):
    upstream.script = sends(*STREAM[:2], None)
    *chunks, last = gateway.stream(headers=REQUEST_ID)
    assert text_of(chunks) == "Hello"
    assert last["error"]["content"]["error"] == UPSTREAM


def test_too_many_requests_say_when_to_come_back(gateway, upstream):
    gateway.limits.per_minute = 1
    upstream.script = sends(*STREAM, DONE)
    assert text_of(gateway.stream()) == "Hello"
    refused = gateway.post()
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60


@pytest.mark.parametrize("stream", [False, True])
def test_an_unforeseen_failure_tells_nothing_and_is_recorded(
    gateway, monkeypatch, stream
):
    def fail(*_: object) -> None:
        raise RuntimeError("a bug with a secret")

    monkeypatch.setattr(Router, "order", fail)
    response = gateway.post(headers=REQUEST_ID, stream=stream)
    assert status_and_detail(response) == (500, INTERNAL)
    assert [item.status for item in gateway.kept.ended] == [500]
    assert gateway.limits.running == 0


def test_a_client_that_leaves_a_stream_ends_the_upstreams_call(gateway, upstream):
    upstream.script = sends(*[part for _ in range(500) for part in (STREAM[0], 0.02)])
    with socket.create_connection(("127.0.0.1", gateway.port)) as client:
        client.sendall(raw_request(stream=True))
        while b"Hel" not in client.recv(10_000):
            pass

    assert gateway.settled(lambda: upstream.hung_up)
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].status == 499
    assert nothing_is_left(gateway, upstream)


def test_a_model_is_described_whatever_its_name_holds(gateway):
    for name in NAMES:
        gateway.declare(name=name)
        for safe in ("", "/:"):
            response = ask_models(gateway, "/" + quote(name, safe=safe))
            assert (response.status_code, response.json()) == (200, described(name))
    names = [model["id"] for model in ask_models(gateway, "").json()["data"]]
    assert sorted(names) == sorted(NAMES)
    assert ask_models(gateway, "/absent", method="HEAD").status_code == 404


def test_the_client_of_an_earlier_runtime_is_closed_first(loops, upstream, way):
    async def started() -> runtime.Runtime:
        return runtime.current()

    earlier = run_in(LOOP_THREAD.loop, started())
    with running(Gateway(loops[0], upstream), way):
        assert earlier.client.closed
