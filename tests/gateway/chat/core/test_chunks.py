"""Chunks are rewritten the same whether they are parsed or recognised."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.chat.core.chunks import Template, without_nulls
from gateway.chat.core.formats import CONTRACT, OPENAI
from gateway.chat.request import ModelRequest
from gateway.chat.sse import EventReader, frame
from gateway.chat.streaming.transform import ChunkTransformer

REQUEST = ModelRequest("small", True, {"stream_options": {"include_usage": True}})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)
TEXT = st.text() | st.sampled_from(
    ['"', "\\", '"content":"', "\\u0041", "\u2028", "é🌊"]
)


def raw(text: str, *, ascii_only: bool, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    value = {"id": "1", "model": "there", **more, "choices": [choice], "usage": None}
    return json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":")).encode(
        errors="surrogatepass"
    )


@given(
    st.lists(
        TEXT.filter(lambda item: item.isascii() or item.isprintable()), max_size=8
    ),
    st.booleans(),
    JSON,
)
def test_recognised_chunks_say_what_parsed_ones_say(texts, ascii_only, odd):
    for api_format in (CONTRACT, OPENAI):
        payloads = [raw(text, ascii_only=ascii_only, odd=odd) for text in texts]
        quick = ChunkTransformer(api_format, REQUEST)
        quick.feed(payloads)
        slow = []
        for payload in payloads:
            transformer = ChunkTransformer(api_format, REQUEST)
            transformer.feed([payload])
            slow.append(transformer.flush())
        events, expected = quick.flush(), b"".join(slow)
        assert _events(events) == _events(expected)
        assert quick.chunks == len(payloads)


def _events(body: bytes) -> list[Any]:
    return [json.loads(part[6:]) for part in body.split(b"\n\n")[:-1]]


def test_a_template_is_used_and_refuses_what_is_not_plain():
    old, new = raw("a", ascii_only=True), b'{"content":"a"}'
    template = Template.learn(old, new)
    assert template is not None
    assert template.apply(raw("b c", ascii_only=True)) == (b'{"content":"b c"}', 3)
    assert template.apply(raw("é", ascii_only=False)) == (
        '{"content":"é"}'.encode(),
        1,
    )
    for text in ('"', "\\", "\n", "\x00", "\u2028"):
        assert template.apply(raw(text, ascii_only=True)) is None
    for payload in (
        old[:-1],
        old.replace(b'"a"', b'"a\xff"'),
        old.replace(b'"a"', b'"a\x00"'),
        old.replace(b'"a"', b'"'),
        b"",
    ):
        assert template.apply(payload) is None


@given(JSON)
def test_without_nulls_no_member_is_null_and_arrays_keep_their_length(value):
    def check(before: Any, after: Any) -> None:
        if isinstance(before, dict):
            assert set(after) == {k for k, v in before.items() if v is not None}
            for key, item in after.items():
                check(before[key], item)
        elif isinstance(before, list):
            assert len(before) == len(after)
            for pair in zip(before, after, strict=True):
                check(*pair)
        else:
            assert before == after

    check(value, without_nulls(value))


@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r\n"))),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
    st.lists(st.integers(1, 30), min_size=1),
)
def test_events_do_not_depend_on_where_reads_are_cut(texts, line_end, sizes):
    payloads = [f"{text}x".encode() for text in texts]
    stream = b"".join(map(frame, payloads)).replace(b"\n", line_end)
    reader, events, at, turn = EventReader(), [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        events += reader.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert events == payloads
