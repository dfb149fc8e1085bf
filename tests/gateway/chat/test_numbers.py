"""Numbers and text stay as they are on the way to an upstream and back, and answers but for one name."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import json as exact_json
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.chunks import Template, dump, parse, renamed, with_model
from gateway.chat.errors import UpstreamServiceError
from tests.gateway.chat.harness import PATHS, STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import DONE, STREAM, answers, event, sends
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    block,
    sends_events,
    started,
    stopped,
)

# As one list, so that each test needs one request.
NUMBERS = ",".join(
    ["1.0", "0.1", "18446744073709551616", "-9223372036854775809", "9" * 4000]
)


def completion(model: str = "upstream-model") -> bytes:
    return (
        f'{{"id":"x", "model": "{model}", "choices":[{{"index":0,"n":[{NUMBERS}]}}],'
        f'"usage":{{"prompt_tokens":1,"completion_tokens":2}}}}'
    ).encode()


@PATHS
@STREAM_OR_NOT
def test_a_number_keeps_its_text_on_the_way_to_the_upstream(
    gateway, upstream, path, stream
):
    upstream.script = sends(*STREAM, DONE) if stream else answers(completion())
    flag = json.dumps(stream)
    body = f'{{"model": "small", "stream": {flag}, "a": [{NUMBERS}] }}'
    assert gateway.post(body.encode(), path=path).status_code == 200
    sent = upstream.requests[0].body
    assert f'"a": [{NUMBERS}]'.encode() in sent
    assert b'"model": "upstream-model"' in sent


@PATHS
@pytest.mark.spec("gateway", "stream is false or absent: one chat completion response")
def test_an_answer_keeps_every_byte_but_the_name(gateway, upstream, path):
    upstream.script = answers(completion())
    response = gateway.post(path=path)
    assert response.content == completion("small")
    assert gateway.kept.ended[0].usage.completion_tokens == 2


@PATHS
def test_a_chunk_keeps_its_numbers(gateway, upstream, path):
    first = f'{{"model":"there","choices":[],"n":[{NUMBERS}],"null":null}}'
    last = f'{{"model":"there","choices":[{{"finish_reason":"stop","n":[{NUMBERS}]}}]}}'
    usage = f'{{"choices":[],"usage":{{"prompt_tokens":1,"x":[{NUMBERS}]}}}}'
    upstream.script = sends(
        *(event(item.encode()) for item in (first, last, usage)), DONE
    )
    body = b'{"model":"small","stream":true,"stream_options":{"include_usage":true}}'
    text = gateway.post(body, path=path).text
    assert text.count(f'"n":[{NUMBERS}]') == 2
    assert f'"x":[{NUMBERS}]' in text


def test_arguments_of_tools_keep_their_numbers_in_translation(claude, upstream):
    block = f'{{"type":"tool_use","id":"t","name":"f","input":{{"a":[{NUMBERS}]}}}}'
    text = json.dumps({**MESSAGE, "content": ["BLOCK"]}).replace('"BLOCK"', block)
    upstream.script = answers(text.encode())
    call = {"name": "f", "arguments": f'{{"a":[{NUMBERS}]}}'}
    messages = [
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "t", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "t", "content": "x"},
    ]
    message = claude(messages=messages).json()["choices"][0]["message"]
    assert f'"input":{{"a":[{NUMBERS}]}}'.encode() in upstream.requests[0].body
    assert message["tool_calls"][0]["function"]["arguments"] == f'{{"a":[{NUMBERS}]}}'


def test_of_a_field_that_is_there_twice_the_last_one_counts_everywhere(
    gateway, upstream
):
    upstream.script = answers(completion())
    body = b'{"model":"other","stream":true,"n":1,"model":"small","stream":false,"n":2}'
    assert gateway.post(body).status_code == 200
    sent = upstream.requests[0].body
    assert sent == b'{"model":"upstream-model","stream":false,"n":2}'


def test_what_is_no_json_is_never_written():
    with pytest.raises(TypeError, match="set"):
        exact_json.dumps({1})
    for text in (b"NaN", b"[1e400,18446744073709551616]", b"[" * 2000 + b"1" * 20):
        with pytest.raises(ValueError):  # noqa: PT011 - of several readers
            exact_json.loads(text)


# RFC 8259 section 8.2: JSON may hold halves of surrogate pairs, here also as a name.
HALVES = b'"\\ud83d x \\uDE00\\u0041","\\udbff":1.0'


@PATHS
@pytest.mark.parametrize("extra", [b"", b',"usage":null'])
def test_half_a_surrogate_pair_stays(gateway, upstream, path, extra):
    text = b'{"model":"there","choices":[{"index":0,"delta":{"content":%s}}]%s}'
    last = b'{"choices":[{"index":0,"delta":{"a":%s},"finish_reason":"stop"}]}' % HALVES
    sent = [text % (HALVES, extra)] * 2 + [last]
    upstream.script = sends(*map(event, sent), DONE)
    response = gateway.post(stream=True, path=path)
    events = [json.loads(item[6:]) for item in response.content.split(b"\n\n")[:3]]
    assert [item["choices"][0]["delta"] for item in events] == [
        json.loads(item)["choices"][0]["delta"] for item in sent
    ]
    assert response.content.count(b'"\\udbff":1.0') == 3
    answer = b'{"model":"there","choices":[{"message":{"content":%s}}]}' % HALVES
    upstream.script = answers(answer)
    assert gateway.post(path=path).content == answer.replace(b"there", b"small")


@PATHS
@STREAM_OR_NOT
def test_half_a_surrogate_pair_stays_in_translation(claude, upstream, path, stream):
    half = "\ud83d"
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": half, "signature": "s"},
        {"type": "text", "text": half},
        {"type": "tool_use", "id": "t", "name": "f", "input": {half: half}},
    ]
    starts = [block(number, **item) for number, item in enumerate(blocks)]
    upstream.script = (
        sends_events(started(), *starts, *stopped("tool_use"))
        if stream
        else answers({**MESSAGE, "content": blocks})
    )
    response = claude(stream=stream, path=path)
    assert response.status_code == 200
    assert "error" not in response.text
    assert response.content.count(b'"\\ud83d"') >= 2
    assert rb"{\"\\ud83d\":" in response.content  # the arguments are JSON in JSON


# ── Another name of the model in JSON that keeps every other byte ─────────────────────


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model": "a", ', b'"x": 1.0}'),
        (b'{"messages":[{"content":"caf\\u00e9 \\/ \\"model\\": \\"z\\""}], "model" :\n"a"', b"}"),
        (b'{"tools":[{"model":{"model":"q"}},{"model":"a"}],"model":"a","x":{"model":"a"}', b"}"),
        (b'{"text":"\\"model\\":\\"a\\"","model":"a"', b"}"),
        (b'{"n":1e999,"model":"a"', b"}"),
        (b'{"model":"a",', b'"n":123456789012345678901234567890}'),
    ],
)  # fmt: skip
def test_every_other_byte_stays(before, after):
    raw = before + after
    value = json.loads(raw)
    new = with_model(raw, value, 'new "name"')
    assert json.loads(new) == {**value, "model": 'new "name"'}
    cut = raw.replace(b'"a"', b"")
    assert new.replace(b'"new \\"name\\""', b"") in {cut, raw.replace(b'"a"', b"", 1)} or (
        len(new) == len(raw) + len(b'"new \\"name\\""') - len(b'"a"')
    )  # fmt: skip


def test_the_same_name_changes_nothing():
    raw = b'{ "model" : "a" }'
    assert with_model(raw, {"model": "a"}, "a") is raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"a","model":"b"}',
        b'{"\\u006dodel":"a","model":"b"}',
        b'{"model":"a","\\u006d\\u006fdel":"b"}',
        b'{"model":"a","model":"new"}',
        b'{"x":[' + b'{"model":"a"},' * 20 + b'0],"model":"b"}',
    ],
)
def test_no_other_member_of_the_name_is_left(raw):
    """Readers differ in which of two members counts: what is sent has one."""
    new = with_model(raw, json.loads(raw), "new")
    pairs: list[list[str]] = []
    json.loads(new, object_pairs_hook=lambda items: pairs.append([k for k, _ in items]))
    assert pairs[-1].count("model") == 1
    assert json.loads(new)["model"] == "new"


def test_work_on_a_body_is_bounded(monkeypatch):
    reads: list[bytes] = []

    def read(raw: bytes) -> Any:
        reads.append(raw)
        return json.loads(raw)

    monkeypatch.setattr(orjson, "loads", read)
    raw = b'{"x":[' + b'{"model":"a"},' * 5000 + b'0],"model":"b"}'
    with_model(raw, json.loads(raw), "new")
    assert len(reads) == chunks.MAX_MEMBERS


# ── Chunks ────────────────────────────────────────────────────────────────────────────


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
    new, plain = made
    assert json.loads(new) == json.loads(payload) | {"model": "asked"}
    assert plain == text


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
    for _ in range(100_000):
        deep = {"x": deep}
    with pytest.raises(UpstreamServiceError):
        dump(deep)
