"""What large bodies and events cost: bounded memory, no work on the event loop, and linear growth."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gateway.chat.core import json_numbers, model_request, off_loop
from gateway.chat.core.model_request import ModelRequest
from gateway.chat.core.sse import MAX_EVENT_BYTES, EventReader
from gateway.chat.metering.body_bytes import SMALL_BYTES, BodyBudget, BodyBytes
from gateway.chat.operations import chat as chat_operations
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.chat.upstreams import anthropic, turns
from tests.gateway.chat.harness import IDENTITY, REQUEST_ID, UPSTREAM, V1, V2, text_of
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    NEVER,
    STREAM,
    answers,
    chunk,
    event,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE, TEXT_STREAM
from tests.running import PATIENCE_S
from webhooks_core.web.errors import TooManyRequestsError, UnavailableError
from webhooks_core.web.json_values import MAX_VALUES

MANY = f"more than {MAX_VALUES} values"
MANY_IN_REQUEST = f"more than {model_request.MAX_VALUES} values"
BIG_TEXT = "x" * (off_loop.LARGE_BYTES + 1)


def peak_of(function: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def with_values(unit: bytes, count: int) -> bytes:
    return b'{"model":"small","a":[' + (unit + b",") * count + b"1]}"


@pytest.mark.parametrize("unit", [b"1.10", b"[]", b'{"a":"b"}'])
def test_a_body_with_too_many_values_is_refused_before_it_is_read(
    gateway, upstream, unit
):
    body = with_values(unit, model_request.MAX_VALUES)
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


def test_arguments_with_too_many_values_are_no_object():
    many = b'{"a":[' + b"1," * model_request.MAX_VALUES + b"1]}"
    call = {"id": "x", "function": {"name": "tide", "arguments": many.decode()}}
    (turn,) = turns.turns([{"role": "assistant", "tool_calls": [call]}])
    assert turn["content"][0]["input"] == {}


@pytest.mark.parametrize("read", [json_numbers.loads, json_numbers.loads_any])
def test_values_are_counted_before_odd_texts_and_numbers_are_read(read):
    raw = b'["\\ud800",1e400' + b",1" * MAX_VALUES + b"]"
    with pytest.raises(ValueError, match=MANY):
        read(raw)


@pytest.mark.parametrize(
    "text", ["," * 2_000_000, "[{" * 1_000_000, '\\",' * 2_000_000, "\\\\" * 2_000_000]
)
def test_marks_within_a_text_are_no_values(text):
    assert json_numbers.loads(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize("raw", [b'"' * 20_000_000, b'"",' * 6_000_000])
def test_quotation_marks_alone_are_refused_without_a_copy_of_each(raw):
    def load() -> None:
        with pytest.raises(ValueError):  # noqa: PT011 - one of two messages
            json_numbers.loads(raw)

    assert peak_of(load) < 16 * len(raw)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        *((number, float) for number in ("0.1", "-12.5")),
        *((number, json_numbers.Number) for number in ("1e400", "1.10", "1E5")),
    ],
)
def test_only_a_number_that_would_change_keeps_its_text(number, kind):
    value = json_numbers.loads(f'{{"a, 1.50, b": ["\\\\", "\\"", {number}]}}'.encode())
    assert type(value["a, 1.50, b"][-1]) is kind
    assert json_numbers.dumps(value).endswith(f"{number}]}}".encode())


def threads_of(monkeypatch: Any, owner: Any, name: str) -> list[str]:
    """Return the names of the threads that a function will run in."""
    names: list[str] = []
    function: Callable[..., Any] = getattr(owner, name)

    def note(*args: Any, **kwargs: Any) -> Any:
        names.append(threading.current_thread().name.rpartition("-")[0])
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, note)
    return names


def test_large_bodies_are_read_and_written_outside_of_the_loop(
    gateway, upstream, monkeypatch
):
    parsed = threads_of(monkeypatch, ModelRequest, "parse")
    written = threads_of(monkeypatch, ModelRequest, "for_upstream")
    checked = threads_of(monkeypatch, chat_operations, "renamed")
    upstream.script = answers({**COMPLETION, "text": BIG_TEXT})
    assert gateway.post(messages=BIG_TEXT).status_code == 200
    assert parsed == written == checked == ["chat-large"]
    assert json.loads(upstream.requests[0].body)["messages"] == BIG_TEXT


def test_large_events_are_transformed_outside_of_the_loop(
    gateway, claude, upstream, monkeypatch
):
    fed = threads_of(monkeypatch, ChunkTransformer, "feed")
    translated = threads_of(monkeypatch, anthropic.Translation, "feed")
    upstream.script = sends(event(chunk(BIG_TEXT)), event(chunk(BIG_TEXT)), DONE)
    assert text_of(gateway.stream()) == BIG_TEXT * 2
    assert fed.count("chat-large") == 2
    big = {**TEXT_STREAM[2], "delta": {"type": "text_delta", "text": BIG_TEXT}}
    upstream.script = sends(*map(event, (*TEXT_STREAM[:2], big)), DONE)
    assert claude(stream=True).status_code == 200
    assert "chat-large" in translated
    upstream.script = answers(
        {**MESSAGE, "content": [{"type": "text", "text": BIG_TEXT}]}
    )
    completed = threads_of(monkeypatch, anthropic, "completion")
    assert claude().status_code == 200
    assert completed == ["chat-large"]


def test_a_request_that_is_cancelled_waits_for_its_work_in_a_thread():
    has_begun, goes_on = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        goes_on.wait(PATIENCE_S)

    async def run() -> None:
        size = off_loop.LARGE_BYTES + 1
        task = asyncio.create_task(off_loop.run(work, size=size))
        await asyncio.to_thread(has_begun.wait, PATIENCE_S)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_an_answer_with_too_many_values_is_a_failure_of_the_upstream(gateway, upstream):
    body = b'{"choices":[' + b"1," * json_numbers.MAX_VALUES_READ + b"1]}"
    upstream.script = answers(body)
    assert gateway.post(headers=REQUEST_ID).json() == {"detail": UPSTREAM}
    upstream.script = sends(STREAM[0], event(body))
    assert gateway.stream()[-1]["error"]["status_code"] == 500


def test_an_event_with_a_large_text_passes(gateway, upstream):
    text = "x" * (MAX_EVENT_BYTES - 1000)
    upstream.script = sends(event(chunk(text)), STREAM[2], DONE)
    assert text_of(gateway.stream()) == text


# ── The budget of bodies ────────────────────────────────────────────────────────────


def test_the_bodies_of_one_key_have_a_budget():
    budget = BodyBudget(per_key=200_000)
    first, second, other = (BodyBytes(budget, key) for key in ("a", "a", "b"))
    first.add(150_000)
    first.add(150_000)  # it is alone
    other.add(1_000_000)
    with pytest.raises(TooManyRequestsError, match="At most 200000 bytes") as refused:
        second.add(SMALL_BYTES + 1)
    assert refused.value.headers == {"Retry-After": "1"}
    second.add(SMALL_BYTES)  # small ones are admitted all the same
    first.release()
    first.add(200_000 - SMALL_BYTES)
    with pytest.raises(TooManyRequestsError):
        first.add(1)
    for body in (first, second, other):
        body.release()
    assert budget == BodyBudget(per_key=200_000)


def test_the_bodies_of_all_keys_have_a_budget():
    budget = BodyBudget(in_all=100)
    first, second = BodyBytes(budget, "a"), BodyBytes(budget, "b")
    first.add(150)
    second.add(SMALL_BYTES)
    with pytest.raises(UnavailableError) as refused:
        second.add(1)
    assert refused.value.headers["Retry-After"]
    first.release()
    second.add(1)


@pytest.mark.parametrize(
    ("budget", "status", "text"),
    [
        ("per_key", 429, "At most 1000 bytes of requests at once."),
        ("in_all", 503, "The running requests are too large; try again."),
    ],
)
def test_a_request_beyond_the_budget_gets_a_clear_answer(
    gateway, upstream, budget, status, text
):
    setattr(gateway.limits.bodies, budget, 1000)
    go_on = asyncio.Event()

    async def slow(request: Any) -> None:
        await go_on.wait()
        await answers(COMPLETION)(request)

    upstream.script = slow
    with ThreadPoolExecutor() as pool:
        first = pool.submit(gateway.post, messages="x" * 2000)
        assert gateway.settled(lambda: upstream.requests)
        for path in (V1, V2):
            response = gateway.post(path=path, messages="x" * (SMALL_BYTES + 1))
            assert response.status_code == status
            assert response.headers["Retry-After"]
            assert text in response.text
        upstream.loop.set(go_on)
        if budget == "per_key":
            other = IDENTITY | {"X-Principal-Id": "bob"}
            assert gateway.post(headers=other).status_code == 200
        assert first.result(PATIENCE_S).status_code == 200


def test_what_a_body_holds_is_bounded_by_the_values_that_are_read(gateway, upstream):
    taken: list[int] = []

    class Noting(BodyBudget):
        def take(self, key: str, *, own: int, more: int) -> None:
            taken.append(more)
            super().take(key, own=own, more=more)

    gateway.limits.bodies = Noting()
    body = b'{"model":"small","x":[' + b"1," * (3 * model_request.MAX_VALUES) + b"1]}"
    assert gateway.post(body).status_code == 400
    assert max(taken) <= 100 * model_request.MAX_VALUES


def test_a_stream_holds_no_bytes_after_its_first_chunk(gateway, upstream):
    upstream.script = sends(STREAM[0], NEVER)
    with gateway.events() as events:
        assert next(events)
        assert gateway.settled(lambda: gateway.limits.bodies.held == 0)
        assert gateway.limits.running == 1


# ── Linear growth ───────────────────────────────────────────────────────────────────


def test_an_event_in_tiny_parts_needs_no_object_for_each():
    reader = EventReader()

    def feed() -> None:
        for _ in range(100_000):
            reader.feed(b"x")

    assert peak_of(feed) < 2**20


@pytest.mark.parametrize("line", [b"a\n", b"data\n", b"data: x\n", b"\r"])
def test_an_event_of_many_lines_needs_memory_in_proportion(line):
    block = b"data: {\n" + line * (2**20 // len(line))
    assert peak_of(lambda: EventReader().feed(block + b"\n\n")) < 24 * 2**20


@pytest.mark.parametrize("name", ["id", "model"])
def test_a_long_name_of_a_message_is_not_repeated_in_every_chunk(name):
    translation = anthropic.Translation(lambda _: None)
    start: dict[str, Any] = {
        "type": "message_start",
        "message": {**MESSAGE, name: "x" * 100_000},
    }
    delta: dict[str, Any] = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "a"},
    }
    chunks = [c for item in (start, *[delta] * 10) for c in translation.chunks_of(item)]
    assert sum(map(len, chunks)) < 10_000
