"""Anthropic's own client reads the gateway's answers, whatever kind of upstream gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    STREAM,
    TOOL_STREAM,
    WHOLE_STREAM,
    answers,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    BLOCK_STREAM,
    MESSAGE,
    TEXT_STREAM,
    sends_events,
    stopped,
)

TOOL: Any = {"name": "tide", "input_schema": {"type": "object"}}


@pytest.fixture(params=["openai", "anthropic"])
def kind(request, gateway, upstream) -> str:
    """Declare a model behind an upstream of each kind."""
    target = Target(upstream.url, "upstream-model", "sk-upstream")
    gateway.declare(upstream=request.param, targets=(target,))
    return str(request.param)


@pytest.fixture(params=["api_key", "auth_token"])
def client(request, gateway, key) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        base_url=gateway.url, max_retries=0, **{request.param: key}
    ) as anthropic_client:
        yield anthropic_client


def ask(call: Any, **fields: Any) -> Any:
    fields = {"model": "small", "max_tokens": 64, "messages": MESSAGES, **fields}
    return call(**fields)


def test_the_client_reads_a_message_and_a_stream(client, upstream, kind):
    is_own = kind == "anthropic"
    upstream.script = answers(MESSAGE if is_own else COMPLETION)
    message = ask(client.messages.create)
    assert message.content[0].text == ("Hello!" if is_own else "Hello")
    assert (message.model, message.stop_reason) == ("small", "end_turn")
    own = sends_events(*TEXT_STREAM, *stopped("end_turn"))
    upstream.script = own if is_own else sends(*WHOLE_STREAM)
    with ask(client.messages.stream) as stream:
        texts = [*stream.text_stream]
        final = stream.get_final_message()
    assert texts == (["Hello", " harbour"] if is_own else ["Hel", "lo"])
    assert (final.model, final.stop_reason) == ("small", "end_turn")
    assert final.usage.output_tokens == (15 if is_own else 2)


def test_the_client_reads_a_streamed_call(client, upstream, kind):
    is_own = kind == "anthropic"
    script = sends_events(*BLOCK_STREAM) if is_own else sends(*TOOL_STREAM)
    upstream.script = script
    with ask(client.messages.stream, tools=[TOOL]) as stream:
        final = stream.get_final_message()
    block = final.content[-1]
    assert (block.name, block.input) == ("tide", {"at": "Brest"})
    assert final.stop_reason == "tool_use"


def test_the_client_counts_tokens(client, upstream, kind):
    upstream.script = answers({"input_tokens": 12})
    counted = client.messages.count_tokens(model="small", messages=MESSAGES)
    assert counted.input_tokens == (12 if kind == "anthropic" else 6)


@STREAM_OR_NOT
def test_the_client_raises_its_own_errors(client, upstream, kind, stream):
    upstream.script = answers(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        400,
    )
    with pytest.raises(anthropic.BadRequestError, match="no"):
        ask(client.messages.create, stream=stream)
    with pytest.raises(anthropic.NotFoundError):
        ask(client.messages.create, model="absent", stream=stream)
    upstream.script = answers({"error": {"type": "x", "message": "y"}}, 503)
    with pytest.raises(anthropic.InternalServerError):
        ask(client.messages.create, stream=stream)
    is_own = kind == "anthropic"
    cut = sends_events(*TEXT_STREAM) if is_own else sends(STREAM[0])
    upstream.script = cut
    with pytest.raises(anthropic.APIError), ask(client.messages.stream) as broken:
        broken.get_final_message()


def test_the_asynchronous_client_reads_a_stream(gateway, upstream, key):
    upstream.script = sends(*WHOLE_STREAM)

    async def read() -> list[str]:
        async with (
            anthropic.AsyncAnthropic(base_url=gateway.url, api_key=key) as client,
            ask(client.messages.stream) as stream,
        ):
            return [text async for text in stream.text_stream]

    assert asyncio.run(read()) == ["Hel", "lo"]
