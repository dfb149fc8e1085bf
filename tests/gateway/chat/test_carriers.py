"""Chat through Django under WSGI: what it does in its own way.

All other tests reach the service past Django, as the site's server does; the golden contract is
replayed in both ways.
"""

import asyncio
from urllib.parse import quote

import pytest

from gateway.chat.targets import Router
from tests.gateway.chat.harness import (
    INTERNAL,
    PATHS,
    REQUEST_ID,
    SHORT_CUT,
    V1,
    WSGI,
    ask_models,
    raw_request,
    status_and_detail,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    NEVER,
    STREAM,
    WHOLE_STREAM,
    answers,
    sends,
)

through_django = pytest.mark.parametrize("way", [WSGI], indirect=True)


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
        ({"Content-Encoding": "gzip"}, 415),
    ):
        response = gateway.post(headers={**REQUEST_ID, **headers})
        assert status_and_detail(response)[0] == status
    assert upstream.requests == []


@pytest.mark.parametrize("way", [SHORT_CUT, WSGI], indirect=True)
def test_bodies_up_to_20_mb_are_taken_and_larger_ones_refused(gateway, upstream):
    upstream.script = answers(COMPLETION)
    largest = b'{"model": "small"}'.ljust(20 * 1024 * 1024)
    assert gateway.post(largest).status_code == 200
    too_large = gateway.post(largest + b" ", headers=REQUEST_ID)
    assert status_and_detail(too_large)[0] == 413


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
def test_a_model_is_described_whatever_its_name_holds(gateway):
    for name in ("meta-llama/Llama-3.1-8B", "/leading", "trailing/", "50%25", "a?b#c"):
        gateway.declare(name=name)
        response = ask_models(gateway, "/" + quote(name, safe=""))
        assert (response.status_code, response.json()["id"]) == (200, name)
    assert ask_models(gateway, "/absent", method="HEAD").status_code == 404
