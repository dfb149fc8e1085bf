"""Large bodies, answers and events: which are taken, and which are refused."""

import json
import threading
from typing import Any

import pytest

from gateway import json as exact_json
from gateway.chat import service
from gateway.chat.request import MAX_VALUES as MAX_VALUES_OF_REQUEST
from gateway.chat.request import ModelRequest
from gateway.chat.sse import MAX_EVENT_BYTES
from tests.gateway.chat.harness import REQUEST_ID, UPSTREAM, text_of
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    answers,
    chunk,
    event,
    sends,
)

MANY_IN_REQUEST = f"more than {MAX_VALUES_OF_REQUEST} values"


def with_values(unit: bytes, count: int) -> bytes:
    return b'{"model":"small","a":[' + (unit + b",") * count + b"1]}"


@pytest.mark.parametrize("unit", [b"1.10", b"[]", b'{"a":"b"}'])
def test_a_body_with_too_many_values_is_refused_before_it_is_read(
    gateway, upstream, unit
):
    body = with_values(unit, MAX_VALUES_OF_REQUEST)
    response = gateway.post(body)
    assert response.status_code == 400
    detail = f"The body is not valid JSON: {MANY_IN_REQUEST}"
    assert response.json() == {"detail": detail}
    assert upstream.requests == []


def test_as_many_tokens_as_openai_takes_at_once_are_not_too_many(gateway, upstream):
    upstream.script = answers({"object": "list", "data": []})
    gateway.declare(name="vectors", inference_type="embedding")
    tokens = [[100_277] * 150] * 2000
    response = gateway.post(path="/v1/embeddings", model="vectors", input=tokens)
    assert response.status_code == 200
    assert json.loads(upstream.requests[0].body)["input"] == tokens


@pytest.mark.parametrize(("size", "is_on_the_loop"), [(1000, True), (2**20, False)])
def test_a_large_body_is_read_beside_the_loop(
    gateway, upstream, monkeypatch, size, is_on_the_loop
):
    threads = []

    class Watched(ModelRequest):
        @classmethod
        def parse(cls, raw: bytes) -> Any:
            threads.append(threading.current_thread())
            return ModelRequest.parse(raw)

    monkeypatch.setattr(service, "ModelRequest", Watched)
    upstream.script = answers(COMPLETION)
    assert gateway.post(padding="x" * size).status_code == 200
    assert [each is gateway.loop._thread for each in threads] == [is_on_the_loop]


def test_an_answer_with_too_many_values_is_a_failure_of_the_upstream(gateway, upstream):
    body = b'{"choices":[' + b"1," * exact_json.MAX_VALUES_READ + b"1]}"
    upstream.script = answers(body)
    assert gateway.post(headers=REQUEST_ID).json() == {"detail": UPSTREAM}
    upstream.script = sends(STREAM[0], event(body))
    assert gateway.stream()[-1]["error"]["status_code"] == 500


def test_an_event_with_a_large_text_passes(gateway, upstream):
    text = "x" * (MAX_EVENT_BYTES - 1000)
    upstream.script = sends(event(chunk(text)), STREAM[2], DONE)
    assert text_of(gateway.stream()) == text
