"""Chat through Django under WSGI: a dozen cases of what it does in its own way.

All other tests reach the service past Django, as the site's server does.
"""

import asyncio
from urllib.parse import quote

import pytest

from gateway.chat.targets import Router
from gateway.configuration.shapes import Target
from tests.gateway.chat.apis.messages.conftest import V1_MESSAGES
from tests.gateway.chat.harness import (
    INTERNAL,
    NOT_FOUND,
    PATHS,
    REQUEST_ID,
    SHORT_CUT,
    UPSTREAM,
    V1,
    WSGI,
    ask_models,
    raw_request,
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
