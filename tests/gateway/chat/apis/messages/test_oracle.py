"""Translations as the vendors' own libraries see them, over generated conversations.

The models of both SDKs check every message and event, and their accumulators say what a client
makes of a stream.
"""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, get_origin

import pytest
from anthropic import types as anthropic_types
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import message_create_params
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types import chat as openai_types
from openai.types.chat import completion_create_params
from pydantic import ConfigDict, TypeAdapter

from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.messages.request import translate
from gateway.chat.apis.messages.writer import MessagesWriter
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.request import ModelRequest, dump
from gateway.chat.sse import DONE
from gateway.chat.streams import TranslatedStream
from gateway.chat.upstreams.anthropic import request as to_anthropic
from tests.gateway.chat.apis.messages.conversations import Maker

# 250 conversations each way; most of them only where there is time.
SEEDS = pytest.mark.parametrize(
    "seeds",
    [range(40), pytest.param(range(40, 250), marks=pytest.mark.slow)],
    ids=["some", "more"],
)
STRICT = ConfigDict(extra="forbid")
OPENAI_MESSAGES = list[openai_types.ChatCompletionMessageParam]
OPENAI_PARTS = list[openai_types.ChatCompletionContentPartParam]
OPENAI_REQUEST = completion_create_params.CompletionCreateParamsNonStreaming
ANTHROPIC_TURNS = list[anthropic_types.MessageParam]
ANTHROPIC_BLOCKS = list[anthropic_types.ContentBlockParam]
ANTHROPIC_REQUEST = message_create_params.MessageCreateParamsNonStreaming
EVENT: Any = anthropic_types.RawMessageStreamEvent
# What no library of OpenAI's knows, and servers with thinking send and take.
OWN = ("reasoning", "reasoning_content", "thinking_blocks")
ASKS = {"stream_options": {"include_usage": True}}


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """Return what checks values of a type; made when needed, since each takes half a second."""
    # A type of its own takes no configuration.
    config = STRICT if get_origin(kind) is list else None
    return TypeAdapter(kind, config=config)


def whole(kind: Any, value: Any) -> None:
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


@SEEDS
def test_requests_of_anthropics_shape_become_openais(seeds):
    for seed in seeds:
        body = Maker(seed).anthropic_request()
        adapter(ANTHROPIC_TURNS).validate_python(body["messages"])
        whole(ANTHROPIC_REQUEST, {**body, "stream": False})
        translated = {"model": "there", **translate(body, "small")}
        translated = json.loads(dump(translated))
        whole(OPENAI_REQUEST, {**translated, "stream": False})
        sent = [
            {name: value for name, value in message.items() if name not in OWN}
            for message in translated["messages"]
        ]
        whole(OPENAI_MESSAGES, sent)
        for message in sent:
            if isinstance(message.get("content"), list):
                whole(OPENAI_PARTS, message["content"])
        _check_calls(sent)


def _check_calls(sent: list[dict[str, Any]]) -> None:
    """Check that the results of all calls follow at once, as OpenAI's API requires."""
    waiting: list[str] = []
    for message in sent:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert not waiting


def as_messages() -> TranslatedStream:
    """Return a stream of chunks that becomes one of messages."""
    writer = MessagesWriter("small", lambda: 7)
    return TranslatedStream(ChatReader(), writer, None, done_completes=False)


@SEEDS
def test_completions_become_messages_at_once_and_as_streams(seeds):
    for seed in seeds:
        maker = Maker(seed)
        completion = maker.completion()
        openai_types.ChatCompletion.model_validate(completion)
        writer = MessagesWriter("small", lambda: 7)
        for each in ChatReader().whole(completion):
            writer.add(each)
        at_once = anthropic_types.Message.model_validate(writer.whole(), strict=True)

        stream = as_messages()
        parts = maker.chunks(completion)
        for part in parts:
            openai_types.ChatCompletionChunk.model_validate(part)
        stream.feed([*(json.dumps(part).encode() for part in parts), DONE])
        assert stream.is_complete
        streamed = _accumulated(stream.flush() + stream.end())
        _assert_same(streamed, at_once)


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
        elif event.type == "content_block_delta":
            assert event.index == open_index
        elif event.type == "content_block_stop":
            assert event.index == open_index
            open_index, stopped = None, stopped + 1
        snapshot = accumulate_event(
            event=event, current_snapshot=snapshot, json_bufs=buffers
        )
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    return anthropic_types.Message.model_validate(snapshot.model_dump(), strict=True)


def _assert_same(
    streamed: anthropic_types.Message, at_once: anthropic_types.Message
) -> None:
    """Compare messages; their ids, and ids that an upstream left out, are made up anew."""
    fields = [
        message.model_dump(exclude_none=True, exclude={"id"})
        for message in (streamed, at_once)
    ]
    keys = [
        [block.pop("id") for block in value["content"] if block["type"] == "tool_use"]
        for value in fields
    ]
    assert len(keys[0]) == len(keys[1])
    assert all(len({*each}) == len(each) for each in keys)
    # What stands nowhere else must be the same.
    assert fields[0] == fields[1]


@SEEDS
def test_openais_requests_become_anthropics(seeds):
    for seed in seeds:
        conversation = Maker(seed).openai_messages()
        known = [
            {name: value for name, value in message.items() if name not in OWN}
            for message in conversation
        ]
        whole(OPENAI_MESSAGES, known)
        body = {"messages": conversation, "max_tokens": 100}
        sent = to_anthropic.translate(body, model="claude", entry="small")
        whole(ANTHROPIC_REQUEST, sent)
        adapter(ANTHROPIC_TURNS).validate_python(sent["messages"])
        calls: list[str] = []
        for turn in sent["messages"]:
            whole(ANTHROPIC_BLOCKS, turn["content"])
            calls += [b["id"] for b in turn["content"] if b["type"] == "tool_use"]
        assert len({*calls}) == len(calls)


@SEEDS
def test_anthropics_streams_become_openais(seeds):
    """A message that is streamed as the API does, and read by OpenAI's client."""
    for seed in seeds:
        maker = Maker(seed)
        completion = maker.completion()
        for call in completion["choices"][0]["message"].get("tool_calls", ()):
            call["id"] = call["id"] or "call_0"
        stream = as_messages()
        stream.feed([json.dumps(part).encode() for part in maker.chunks(completion)])
        events = (stream.flush() + stream.end()).decode().split("\n\n")[:-1]
        payloads = [event.split("data: ")[1].encode() for event in events]

        back = TranslatedStream(
            MessagesReader(),
            ChatWriter(ModelRequest("claude", True, ASKS), is_contract=False),
            None,
            done_completes=True,
        )
        back.feed(payloads)
        frames = (back.flush() + back.end()).split(b"\n\n")[:-1]
        chunks = [frame.removeprefix(b"data: ") for frame in frames]
        assert chunks.pop() == DONE
        state: Any = ChatCompletionStreamState()
        for chunk in chunks:
            state.handle_chunk(
                openai_types.ChatCompletionChunk.model_validate_json(chunk)
            )
        choice = state.current_completion_snapshot.choices[0]
        before = completion["choices"][0]
        assert choice.finish_reason == before["finish_reason"]
        assert (choice.message.content or "") == (before["message"]["content"] or "")
        calls = before["message"].get("tool_calls") or []
        assert [call.function.name for call in choice.message.tool_calls or ()] == [
            call["function"]["name"] for call in calls
        ]
        assert [
            json.loads(call.function.arguments)
            for call in choice.message.tool_calls or ()
        ] == [json.loads(call["function"]["arguments"] or "{}") for call in calls]
