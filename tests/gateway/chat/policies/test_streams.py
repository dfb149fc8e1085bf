"""Rules in streams: however a text is cut into events, it is masked as if it were whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from gateway.chat.policies.checks import Checks, PolicyDeniedError
from gateway.chat.policies.rules import Rule
from gateway.chat.policies.streams import (
    HOLD,
    ChunkGuard,
    MessageGuard,
    ResponseGuard,
    StreamGuard,
)
from gateway.configuration.content import PolicyEntry
from tests.gateway.chat.mock_upstream import chunk

CARD = PolicyEntry("card", "mask", "answer", pattern="card")
EMAIL = PolicyEntry("email", "mask", "answer", pattern="email")
DENIED = PolicyEntry("falcon", "deny", "answer", words=("project falcon",))
TEXT = (
    "Pay with 4111 1111 1111 1111 or 5500000000000004. " * 3
    + "Write to ada@example.com. " * 30
    + "The end is 4111111111111111"
)
MASKED = (
    "Pay with [card] or [card]. " * 3 + "Write to [email]. " * 30 + "The end is [card]"
)


def guard(kind: type[StreamGuard], *entries: PolicyEntry) -> StreamGuard:
    rules = tuple(map(Rule.of, entries))
    return kind(Checks(rules, "chat.completions"), list(rules))


def pieces(text: str, seed: int) -> Iterable[str]:
    random = Random(seed)  # noqa: S311 - to be the same in every run
    while text:
        size = random.choice((1, 3, 7, 40, 700))
        yield text[:size]
        text = text[size:]


def chunk_text(events: Iterable[bytes]) -> str:
    parts = [json.loads(event)["choices"][0]["delta"] for event in events]
    return "".join(part.get("content") or "" for part in parts)


def test_usage_in_each_chunk_ends_no_text():
    stream = guard(ChunkGuard, CARD)
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    parts = ["4111 1111", " 1111 1111"]
    events = [json.dumps(chunk(part, usage=usage)).encode() for part in parts]
    end = chunk(" end", "stop", usage=usage)
    end["choices"][0]["logprobs"] = {"content": [{"token": "1111"}]}
    out = [*stream.feed([*events, json.dumps(end).encode()]), *stream.end()]
    assert chunk_text(out) == "[card] end"
    assert b"1111" not in b"".join(out)
    last = json.loads(out[-1])
    assert (last["usage"], last["choices"][0]["finish_reason"]) == (usage, "stop")


@pytest.mark.parametrize("seed", range(20))
def test_chunks_are_masked_wherever_they_are_cut(seed: int):
    stream = guard(ChunkGuard, CARD, EMAIL)
    events = [json.dumps(chunk(piece)).encode() for piece in pieces(TEXT, seed)]
    events.append(json.dumps(chunk(finish="stop")).encode())
    out = [sent for event in events for sent in stream.feed([event])]
    assert chunk_text(out) == MASKED
    assert json.loads(out[-1])["choices"][0]["finish_reason"] == "stop"
    assert stream.end() == []


def test_no_more_than_the_window_is_held_back():
    stream = guard(ChunkGuard, CARD)
    sent = 0
    for number in range(200):
        out = stream.feed([json.dumps(chunk("ten chars ")).encode()])
        sent += len(chunk_text(out))
        assert sent >= 10 * number - HOLD


def test_a_stream_that_ends_without_a_reason_gives_out_what_is_held():
    stream = guard(ChunkGuard, CARD)
    first = stream.feed([json.dumps(chunk("4111111111111111")).encode()])
    assert (first, chunk_text(stream.end())) == ([], "[card]")


def test_a_denied_text_is_never_sent_in_part():
    stream, sent = guard(ChunkGuard, DENIED), []
    for piece in ("x " * 200, "Proj", "ect ", "fal"):
        sent += stream.feed([json.dumps(chunk(piece)).encode()])
    with pytest.raises(PolicyDeniedError, match="denied by the policy falcon"):
        stream.feed([json.dumps(chunk("con")).encode()])
    assert "Proj" not in chunk_text(sent)


def test_texts_of_different_kinds_keep_their_order():
    stream = guard(ChunkGuard, CARD)
    call = {"index": 0, "id": "c", "function": {"name": "pay", "arguments": '{"a":'}}
    more = {"index": 0, "function": {"arguments": '"4111111111111111"}'}}

    def delta(**fields: Any) -> bytes:
        choice = {"index": 0, "delta": fields, "finish_reason": None}
        return json.dumps({"choices": [choice]}).encode()

    events = [
        delta(role="assistant", content=""),
        delta(reasoning_content="Hm 4111111111111111"),
        delta(content="Yes."),
        delta(tool_calls=[call]),
        delta(tool_calls=[more]),
        json.dumps(
            {**chunk(finish="tool_calls"), "usage": {"prompt_tokens": 1}}
        ).encode(),
    ]
    out = [json.loads(event) for event in stream.feed(events)]
    deltas = [value["choices"][0]["delta"] for value in out]
    assert [next(iter(each), "") for each in deltas] == [
        *("role", "reasoning_content", "content", "tool_calls", "tool_calls", ""),
    ] or deltas[-1].get("content") is None
    texts = json.dumps(deltas)
    assert "Hm [card]" in texts
    assert texts.index("Yes.") < texts.index('"pay"')
    arguments = "".join(
        part["function"].get("arguments", "")
        for each in deltas
        for part in each.get("tool_calls", ())
    )
    assert json.loads(arguments) == {"a": "[card]"}


def test_messages_are_masked_block_by_block():
    stream = guard(MessageGuard, CARD)

    def event(value: dict[str, Any]) -> bytes:
        return f"event: {value['type']}\ndata: {json.dumps(value)}".encode()

    def delta(text: str) -> bytes:
        part = {"type": "text_delta", "text": text}
        return event({"type": "content_block_delta", "index": 0, "delta": part})

    stop = event({"type": "content_block_stop", "index": 0})
    out = stream.feed(
        [delta("Card 4111 1111 "), event({"type": "ping"}), delta("1111 1111"), stop]
    )
    assert out[-1] == stop
    texts = [json.loads(each.partition(b"data: ")[2]).get("delta", {}) for each in out]
    assert "".join(part.get("text", "") for part in texts) == "Card [card]"


def test_responses_are_masked_in_deltas_and_in_whole_texts():
    stream = guard(ResponseGuard, CARD)
    kind = "response.output_text"
    place = {"output_index": 0, "content_index": 0}
    events = [
        {"type": f"{kind}.delta", "delta": "4111 1111 ", "sequence_number": 1, **place},
        {"type": f"{kind}.delta", "delta": "1111 1111.", "sequence_number": 2, **place},
        {"type": f"{kind}.done", "text": "4111 1111 1111 1111.", "sequence_number": 3},
    ]
    out = [json.loads(e) for e in stream.feed([json.dumps(e).encode() for e in events])]
    assert [each["sequence_number"] for each in out] == [2, 3]
    assert (out[0]["delta"], out[1]["text"]) == ("[card].", "[card].")
