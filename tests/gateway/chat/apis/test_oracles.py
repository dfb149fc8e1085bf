"""Translations as the vendors' own libraries see them.

Their types judge what upstreams get in the recorded conversations, and every event of answers that
are made up; their accumulators say what a client makes of a stream.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, get_origin

import pytest
from anthropic import types as anthropic_types
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import message_create_params
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import chat as openai_types
from openai.types.chat import completion_create_params
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import ConfigDict, TypeAdapter

from gateway.chat.apis.messages.operation import MESSAGES
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.messages.writer import MessagesWriter
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.apis.responses.operation import RESPOND
from gateway.chat.apis.responses.tools import read
from gateway.chat.apis.responses.writer import ResponsesWriter
from gateway.chat.sse import DONE
from gateway.chat.streams import TranslatedStream
from tests.gateway.chat.apis.recorded import PAIRS, api_of
from tests.gateway.chat.apis.responses.harness import PATCH, TIDE, events_of
from tests.gateway.chat.harness import facts
from tests.gateway.chat.mock_upstream import HEAD, USAGE

STRICT = ConfigDict(extra="forbid")
TYPES: dict[str, tuple[Any, Any]] = {
    "chat": (
        completion_create_params.CompletionCreateParamsNonStreaming,
        list[openai_types.ChatCompletionMessageParam],
    ),
    "messages": (
        message_create_params.MessageCreateParamsNonStreaming,
        list[anthropic_types.MessageParam],
    ),
}
EVENT: Any = anthropic_types.RawMessageStreamEvent
# What no library of OpenAI's knows, and servers with thinking send and take.
OWN = ("reasoning", "reasoning_content", "thinking_blocks", "extra_content")


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks values of a type; made when needed, since each takes half a second."""
    # A type of its own takes no configuration.
    config = STRICT if get_origin(kind) is list else None
    return TypeAdapter(kind, config=config)


def check(kind: Any, value: Any) -> None:
    """Check a value, and what pydantic would check only when it is iterated."""
    for field in _each(adapter(kind).validate_python(value)):
        if not isinstance(field, str | dict | list | None) and isinstance(
            field, Iterable
        ):
            list(field)


def _each(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        yield from value.values()
    for item in value if isinstance(value, list) else ():
        yield from _each(item)


def without_own(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(without_own, value)]
    if not isinstance(value, dict):
        return value
    return {name: without_own(item) for name, item in value.items() if name not in OWN}


@pytest.mark.parametrize(
    "name", [name for name, pair in PAIRS.items() if api_of(pair) in TYPES]
)
def test_what_an_upstream_gets_is_of_its_apis_types(name):
    pair = PAIRS[name]
    api, body = api_of(pair), pair["upstream"]["body"]
    request, turns = TYPES[api]
    messages = without_own(body["messages"]) if api == "chat" else body["messages"]
    check(request, {**body, "messages": messages, "stream": False})
    check(turns, messages)
    if api == "chat":
        _check_calls(messages)


def _check_calls(messages: list[dict[str, Any]]) -> None:
    """Check that the results of all calls follow at once, as OpenAI's API requires."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


# ── Answers ─────────────────────────────────────────────────────────────────────────

CONVERSATIONS = settings(
    max_examples=300 if settings.get_current_profile_name() == "long" else 40,
    deadline=None,
)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12
)
ARGUMENTS = st.dictionaries(TEXTS, TEXTS, max_size=2).map(json.dumps)
TEXT_KINDS = ("reasoning_content", "content", "refusal")
# A step of a model: what it thinks, says, refuses, or calls. A completion has them in this order.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TEXT_KINDS), TEXTS),
        st.tuples(st.just("tide"), ARGUMENTS | st.just("")),
        st.tuples(
            st.just("apply_patch"), TEXTS.map(lambda t: json.dumps({"input": t}))
        ),
        st.tuples(st.just("absent"), ARGUMENTS),
    ),
    max_size=6,
).map(lambda steps: sorted(steps, key=lambda s: [*TEXT_KINDS, s[0]].index(s[0])))
REASONS = st.sampled_from(["stop", "length", "content_filter", "tool_calls"])


def completion(steps: list[tuple[str, str]], reason: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for name, text in steps:
        if name in TEXT_KINDS:
            message[name] = (message.get(name) or "") + text
        else:
            calls = message.setdefault("tool_calls", [])
            function = {"name": name, "arguments": text}
            key = f"call_{len(calls)}"
            calls.append({"id": key, "type": "function", "function": function})
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE}


def chunks(
    steps: list[tuple[str, str]], cut: int, reason: str
) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a stream; each text comes in two parts."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    calls = 0
    for name, text in steps:
        halves = [half for half in (text[:cut], text[cut:]) if half]
        if name in TEXT_KINDS:
            deltas += [{name: half} for half in halves]
            continue
        function = {"name": name, "arguments": ""}
        first = {"id": f"call_{calls}", "type": "function", "function": function}
        parts: list[dict[str, Any]] = [first]
        parts += [{"function": {"arguments": half}} for half in halves]
        deltas += [{"tool_calls": [{"index": calls, **part}]} for part in parts]
        calls += 1
    for delta in deltas:
        yield _chunk(delta)
    yield _chunk({}, reason)
    yield {**HEAD, "choices": [], "usage": USAGE}


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {**HEAD, "choices": [choice]}


def streamed(writer: Any, steps: Any, cut: int, reason: str) -> bytes:
    stream = TranslatedStream(writer.context, ChatReader(), writer)
    parts = [*chunks(steps, cut, reason)]
    for part in parts:
        openai_types.ChatCompletionChunk.model_validate(part)
    stream.feed([json.dumps(part).encode() for part in parts])
    assert stream.is_complete
    return stream.flush() + stream.end()


def at_once(writer: Any, steps: Any, reason: str) -> dict[str, Any]:
    for each in ChatReader().whole(completion(steps, reason)):
        writer.context.note(each)
        writer.add(each)
    whole: dict[str, Any] = writer.whole()
    return whole


def messages_writer() -> MessagesWriter:
    return MessagesWriter(facts(MESSAGES))


def responses_writer() -> ResponsesWriter:
    tools = [TIDE, PATCH]
    return ResponsesWriter(facts(RESPOND, tools=tools), read(tools))


def without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = {"id", "status", "call_id"}
    return [{k: v for k, v in item.items() if k not in made} for item in items]


@CONVERSATIONS
@given(STEPS, st.integers(0, 8), REASONS)
def test_an_answer_becomes_a_response_at_once_and_as_a_stream(steps, cut, reason):
    last = events_of(streamed(responses_writer(), steps, cut, reason))[-1]["response"]
    whole = at_once(responses_writer(), steps, reason)
    for response in (whole, last):
        model = Response.model_validate(response)
        said = "".join(text for name, text in steps if name == "content")
        assert model.output_text == said
        for item in response["output"]:  # the client can send it back
            adapter(ResponseInputItemParam).validate_python(item)
    assert without_ids(whole["output"]) == without_ids(last["output"])
    calls = [item for item in last["output"] if "call_id" in item]
    expected = [step for step in steps if step[0] not in TEXT_KINDS]
    assert [call["name"] for call in calls] == [name for name, _ in expected]
    for call, (name, arguments) in zip(calls, expected, strict=True):
        if name == "apply_patch":
            assert call["input"] == json.loads(arguments)["input"]
        else:
            assert call["arguments"] == (arguments or "{}")


@CONVERSATIONS
@given(STEPS, st.integers(0, 8), REASONS)
def test_an_answer_becomes_a_message_at_once_and_as_a_stream(steps, cut, reason):
    body = streamed(messages_writer(), steps, cut, reason)
    last = _accumulated(body).model_dump(exclude_none=True, exclude={"id"})
    whole = at_once(messages_writer(), steps, reason)
    model = anthropic_types.Message.model_validate(whole, strict=True)
    first = model.model_dump(exclude_none=True, exclude={"id"})
    assert without_ids(last.pop("content")) == without_ids(first.pop("content"))
    assert last == first
    # And back, as OpenAI's client reads it.
    events = [event.split("data: ")[1] for event in body.decode().split("\n\n")[:-1]]
    context = facts(stream=True)
    back = TranslatedStream(context, MessagesReader(), ChatWriter(context))
    back.feed([event.encode() for event in events])
    *parts, done = (back.flush() + back.end()).split(b"\n\n")[:-1]
    assert done == b"data: " + DONE
    state: Any = ChatCompletionStreamState()
    for part in parts:
        chunk = part.removeprefix(b"data: ")
        state.handle_chunk(openai_types.ChatCompletionChunk.model_validate_json(chunk))
    message = state.current_completion_snapshot.choices[0].message
    said = "".join(text for name, text in steps if name in ("content", "refusal"))
    assert (message.content or "") == said
    calls = [step for step in steps if step[0] not in TEXT_KINDS]
    assert [
        (call.function.name, json.loads(call.function.arguments))
        for call in message.tool_calls or ()
    ] == [(name, json.loads(arguments or "{}")) for name, arguments in calls]


def _accumulated(body: bytes) -> anthropic_types.Message:
    """Return what Anthropic's client makes of a stream; check the order of its events."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    open_index, stopped = None, 0
    kinds: list[str] = []
    for each in body.decode().split("\n\n")[:-1]:
        name, data = each.split("\n")
        event = adapter(EVENT).validate_json(data.removeprefix("data: "), strict=True)
        assert name == f"event: {event.type}"
        kinds.append(event.type)
        if event.type == "content_block_start":
            assert (open_index, event.index) == (None, stopped)
            open_index = event.index
        elif event.type in ("content_block_delta", "content_block_stop"):
            assert event.index == open_index
        if event.type == "content_block_stop":
            open_index, stopped = None, stopped + 1
        snapshot = accumulate_event(
            event=event, current_snapshot=snapshot, json_bufs=buffers
        )
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    return anthropic_types.Message.model_validate(snapshot.model_dump(), strict=True)
