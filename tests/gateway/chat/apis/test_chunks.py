"""Chunks of OpenAI's streams that are rewritten as bytes, beside the same by way of their JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.chat.apis.openai.chunks import Template, dump, parse, renamed
from gateway.chat.errors import UpstreamServiceError


def chunk(text: str, *, model: str = "there") -> bytes:
    choice = {"index": 0, "delta": {"content": text}}
    value = {"id": "c", "model": model, "choices": [choice]}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def learnt() -> Template:
    old = chunk("Hello")
    template = Template.learn(old, renamed(old, json.loads(old), "asked"))
    assert template is not None
    return template


@given(text=st.text(max_size=20), model=st.sampled_from(["there", "other"]))
def test_a_chunk_of_the_same_form_is_rewritten_as_by_its_json(text, model):
    payload = chunk(text, model=model)
    if (made := learnt().apply(payload)) is None:
        # A text with an escape, or a chunk that differs in more.
        assert model == "other" or not text.isprintable() or set(text) & set('"\\')
        return
    new, length = made
    assert json.loads(new) == json.loads(payload) | {"model": "asked"}
    assert length == len(text)


@pytest.mark.parametrize(
    "payload",
    [
        chunk("Hello")[:-1] + b',"content":"x"}',
        chunk('a "quoted" text'),
        b'{"model":"there"}',
        chunk("Hello").replace(b"Hello", b"\xff"),
        b'{"content":"Hello',
    ],
)
def test_what_has_no_single_plain_text_is_no_template(payload):
    assert Template.learn(payload, payload) is None


def test_parts_of_a_form_that_overlap_are_none_of_it():
    template = Template.learn(b'{"content":"ab"}', b'{"content":"ab"}')
    assert template is not None
    assert template.apply(b'{"content":"}') is None
    assert template.apply(b'{"content":"\xff"}') is None


def test_a_list_around_an_error_is_taken_off():
    """Gemini's API sends its errors so."""
    assert parse(b'[{"error": {"message": "no"}}]') == {"error": {"message": "no"}}


def test_what_is_no_object_or_nested_too_deeply_is_the_upstreams_failure():
    for payload in (b"[1]", b'"x"', b"{"):
        with pytest.raises(UpstreamServiceError):
            parse(payload)
    deep: Any = {}
    for _ in range(2000):
        deep = {"x": deep}
    with pytest.raises(UpstreamServiceError):
        dump(deep)
