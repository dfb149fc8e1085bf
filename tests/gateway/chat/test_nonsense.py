"""Whatever an upstream or a client sends, nothing but a failure that the tables know comes of it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.chat.core import failures, formats
from gateway.chat.errors import SYNCHRONOUS, ChatError
from gateway.chat.request import ModelRequest
from gateway.chat.sse import EventReader
from gateway.chat.streaming.transform import ChunkTransformer
from gateway.chat.upstreams import anthropic, messages
from tests.gateway.chat.upstreams.anthropic_cases import CASES
from tests.gateway.chat.upstreams.anthropic_events import BLOCK_STREAM as STREAM
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE, TEXT_STREAM, stopped

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    paths = [path] if path else []
    for key, it in inner:
        paths += (
            places(it, (*path, key)) if isinstance(it, dict | list) else [(*path, key)]
        )
    return paths


@st.composite
def spoiled(draw: st.DrawFn, values: list[Any]) -> Any:
    """One of the values, with something else somewhere in it."""
    value = json.loads(json.dumps(draw(st.sampled_from(values))))
    *way, last = draw(st.sampled_from(places(value)))
    inner = value
    for key in way:
        inner = inner[key]
    inner[last] = draw(JSON)
    return value


EVENTS: list[Any] = [*TEXT_STREAM, *STREAM, *stopped("end_turn"), {"type": "error", "error": {"type": "x"}}]  # fmt: skip


@given(st.lists(spoiled(EVENTS), max_size=6))
def test_spoiled_events_of_anthropic(events):
    translation = anthropic.Translation(lambda _: None)
    request = ModelRequest("claude", True, {"stream_options": {"include_usage": True}})
    transformer = ChunkTransformer(formats.CONTRACT, request)
    with suppress(ChatError):
        for event in [*STREAM[:5], *events, *STREAM[5:]]:
            transformer.feed(list(translation.chunks_of(event)))
    transformer.flush_all()


TOOL_USE = {"type": "tool_use", "input": {}}


@given(spoiled([{**MESSAGE, "content": [*MESSAGE["content"], TOOL_USE]}]))
def test_spoiled_messages_of_anthropic(message):
    with suppress(ChatError):
        json.loads(anthropic.completion(json.dumps(message).encode()))


BODIES: list[Any] = [
    {"messages": [{"role": "user", "content": "Hi"}], **fields}
    for rows in CASES.values()
    for fields, _ in rows
    if fields
]


@given(spoiled(BODIES))
def test_spoiled_requests_for_anthropic(body):
    body = json.loads(json.dumps(body).encode())  # as they come in
    with suppress(ChatError):
        json.dumps(messages.translate(body, model="there", stream=True))


@given(JSON, st.integers(0, 999))
def test_errors_of_any_shape(value, status):
    for error in (value, {"error": value}, {"error": {"code": value, "type": value}}):
        failure = failures.failure_in(error, status=status)
        for api_format in (formats.CONTRACT, formats.OPENAI):
            told, body, _ = api_format.failure(SYNCHRONOUS, failure, "req-7")
            assert told in {400, 429, 500}
            json.dumps(body)
            api_format.error_event(failure, "req-7")


@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"data: ", b"\n\n", b"{}", b"[DONE]", b"\r"])))  # fmt: skip
def test_bytes_of_any_kind(parts):
    reader, transformer = (
        EventReader(),
        ChunkTransformer(formats.OPENAI, ModelRequest("x", True, {})),
    )
    with suppress(ChatError):
        for part in parts:
            transformer.feed(reader.feed(part))
    transformer.flush_all()
