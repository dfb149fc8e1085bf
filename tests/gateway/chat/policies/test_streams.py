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


CUT = ("4111 1111", " 1111 1111 end")


def choice(index: int = 0, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def call(number: int, text: str, **fields: Any) -> dict[str, Any]:
    return {"index": number, "function": {"arguments": text}, **fields}


def detail(text: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "index": 0}


def thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


# How servers send two pieces of a text, and how many texts these are.
SIDE_BY_SIDE: dict[str, tuple[int, list[list[dict[str, Any]]]]] = {
    "choices in turn": (2, [[choice(i, content=t)] for t in CUT for i in (0, 1)]),
    "choices together": (2, [[choice(i, content=t) for i in (0, 1)] for t in CUT]),
    "a choice that ends": (*(1, [[choice(1, content=CUT[0])], [choice(0, "stop")]]),),
    "calls": (2, [[choice(tool_calls=[call(i, t) for i in (0, 1)])] for t in CUT]),
    "a call beside text": (
        *(1, [[choice(content="a", tool_calls=[call(0, t)])] for t in CUT]),
    ),
    "the id of a call again": (
        *(1, [[choice(tool_calls=[call(0, t, id="c")])] for t in CUT]),
    ),
    "a custom tool": (
        1,
        [[choice(tool_calls=[{"index": 0, "custom": {"input": t}}])] for t in CUT],
    ),
    "a function": (1, [[choice(function_call={"arguments": t})] for t in CUT]),
    "a transcript": (1, [[choice(audio={"transcript": t})] for t in CUT]),
    "reasoning in two forms": (
        *(2, [[choice(reasoning=t, reasoning_details=[detail(t)])] for t in CUT]),
    ),
    "parts": (1, [[choice(content=[{"type": "text", "text": t}])] for t in CUT]),
    "parts of thinking": (1, [[choice(content=[thinking(t)])] for t in CUT]),
    "blocks of thinking": (
        1,
        [[choice(thinking_blocks=[{"type": "thinking", "thinking": t}])] for t in CUT],
    ),
}
SIDE_BY_SIDE["a choice that ends"][1].append([choice(1, content=CUT[1])])


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_texts_side_by_side_are_masked_wherever_they_are_cut(name: str):
    count, pieces = SIDE_BY_SIDE[name]
    stream = guard(ChunkGuard, CARD)
    events = [json.dumps({"choices": choices}).encode() for choices in pieces]
    out = b"".join([*stream.feed(events), *stream.end()])
    assert (out.count(b"[card] end"), b"1111" in out) == (count, False)


def test_a_text_in_no_known_place_is_masked_in_each_event():
    stream = guard(ChunkGuard, CARD)
    note = {"title": "4111 1111 1111 1111", "url": "https://example.com"}
    event = {"choices": [choice(annotations=[note])], "system_fingerprint": "x"}
    (out,) = stream.feed([json.dumps(event).encode()])
    assert json.loads(out)["choices"][0]["delta"]["annotations"][0]["title"] == "[card]"


def test_a_text_ends_when_more_of_another_comes_than_is_held():
    stream = guard(ChunkGuard, CARD)
    events = [[choice(reasoning="Hm.")], [choice(content="x" * HOLD + "y")]]
    out = stream.feed([json.dumps({"choices": e}).encode() for e in events])
    deltas = [json.loads(event)["choices"][0]["delta"] for event in out]
    assert deltas == [{"reasoning": "Hm."}, {"content": "x"}]


@pytest.mark.parametrize("text", ["Hm. " * 200, "Pay 4111 1111 1111 1111"])
def test_a_signed_text_stays_whole_and_its_signature_goes_with_a_mask(text: str):
    stream = guard(ChunkGuard, CARD)
    block = {"type": "thinking", "thinking": text, "signature": "s"}
    pieces = [choice(reasoning_content=text), choice(thinking_blocks=[block])]
    out = stream.feed([json.dumps({"choices": [piece]}).encode() for piece in pieces])
    *said, last = [json.loads(event)["choices"][0]["delta"] for event in out]
    masked = text.replace("4111 1111 1111 1111", "[card]")
    assert "".join(delta["reasoning_content"] for delta in said) == masked
    signature = "s" if masked == text else ""
    new = {"type": "thinking", "thinking": masked, "signature": signature}
    assert last == {"thinking_blocks": [new]}
    checks, rules = Checks((), "x"), [Rule.of(CARD)]
    assert checks.masked([block], rules, "answer") == [new]


def test_items_of_a_response_are_masked_side_by_side():
    stream = guard(ResponseGuard, CARD)
    kind = "response.output_text"
    events: list[dict[str, Any]] = []
    for text in CUT:
        events += [
            {
                "type": f"{kind}.delta",
                "output_index": i,
                "content_index": 0,
                "delta": text,
            }
            for i in (0, 1)
        ]
        events += [{"type": f"{kind}.annotation.added", "output_index": 0}]
        events += [{"type": "keepalive"}]
    out = [*stream.feed([json.dumps(e).encode() for e in events]), *stream.end()]
    deltas = [e["delta"] for e in map(json.loads, out) if "delta" in e]
    assert deltas == ["[card] end"] * 2


def test_a_citation_ends_no_text_of_a_message():
    stream = guard(MessageGuard, CARD)
    deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": t} for t in CUT]
    deltas.insert(1, {"type": "citations_delta", "citation": {"title": "Tides"}})
    kind = "content_block_delta"
    events = [{"type": kind, "index": 0, "delta": delta} for delta in deltas]
    sent = stream.feed(
        [f"event: {kind}\ndata: {json.dumps(e)}".encode() for e in events]
    )
    out = b"".join([*sent, *stream.end()])
    assert b"[card] end" in out
    assert b"1111" not in out


def test_words_mask_no_reason_of_an_end():
    rule = PolicyEntry("end", "mask", "answer", words=("stop", "completed"))
    stream = guard(ChunkGuard, rule)
    (out,) = stream.feed([json.dumps({"choices": [choice(0, "stop")]}).encode()])
    assert json.loads(out)["choices"][0]["finish_reason"] == "stop"
