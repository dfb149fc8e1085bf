"""Messages for upstreams of Anthropic's own kind: what passes, byte for byte, and what breaks."""

import json

import pytest

from gateway.chat.apis import carried
from gateway.chat.tokens import Usage
from tests.gateway.chat.harness import REQUEST_ID, UPSTREAM
from tests.gateway.chat.mock_upstream import answers, sends
from tests.gateway.chat.upstreams.anthropic_events import (
    BLOCK_STREAM,
    MESSAGE,
    OVERLOADED,
    TEXT_STREAM,
    USE,
    block,
    delta,
    named,
    sends_events,
    started,
    stopped,
    with_model,
)

# ── Requests ────────────────────────────────────────────────────────────────────────


def test_every_byte_of_a_request_passes_but_the_name_of_the_model(claude, upstream):
    upstream.script = answers(MESSAGE)
    head = (
        '{ "metadata": {"user_id":"u\\u00e9"},"temperature":1.0,\n  "system":[{"type":"text",'
        '"text":"x-anthropic-billing-header: cc_version=2.1; model"},{"type":"text","text":"é"}],'
        '"tools":[{"name":"Agent","input_schema":{"properties":{"model":{"type":"string"}}}}],'
        '"context_management":{"edits":[]},"output_config":{"effort":"low"},'
        '"new_field": {"model": "claude", "cache_control":{"type":"ephemeral"}}, "model": '
    ).encode()
    tail = b' , "max_tokens": 1e2, "messages": [] }'
    assert claude(head + b'"claude"' + tail).status_code == 200
    assert upstream.requests[0].body == head + b'"claude-there"' + tail


def test_headers_of_the_api_pass_and_no_others(claude, upstream):
    upstream.script = answers(MESSAGE)
    passed = {
        "anthropic-version": "2099-01-01",
        "anthropic-beta": "context-1m-2025-08-07,not-yet-known-2099-01-01",
        "Anthropic-Something-New": "yes",
        "anthropic-workspace-id": "wrkspc_1",
    }
    others = {
        "x-app": "cli",
        "x-claude-code-session-id": "s",
        "x-claude-code-request-class": "main",
        "Cookie": "a=b",
    }
    claude(headers={**passed, **others})
    got = upstream.requests[0].headers
    assert {name: got[name.lower()] for name in passed} == passed
    assert got["x-api-key"] == "sk-ant-secret"
    assert not {*others, "authorization", "x-tenant-id"} & {*got}


@pytest.mark.parametrize(
    ("query", "passed"),
    [("", ""), ("?beta=true", "?beta=true"), ("?a=b&beta=true", "?beta=true"), ("?x=/../", "")],
)  # fmt: skip
def test_the_query_of_beta_requests_passes(claude, upstream, query, passed):
    upstream.script = answers(MESSAGE)
    assert claude(path=f"/v1/messages{query}").status_code == 200
    assert upstream.requests[0].path == f"/v1/messages{passed}"


def test_what_the_gateway_put_in_for_other_servers_does_not_pass(claude, upstream):
    upstream.script = answers(MESSAGE)
    packed = carried.pack({"signature": "theirs"})
    other = [{"type": "thinking", "thinking": "a", "signature": packed}]
    key = carried.call_id("call_1", {"google": {"thought_signature": "x"}})
    call = {"type": "tool_use", "id": key, "name": "tide", "input": {}}
    own = {"type": "thinking", "thinking": "b", "signature": "its own"}
    turns = [
        {"role": "assistant", "content": other},
        {"role": "assistant", "content": [own, *other, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": key}]},
    ]
    assert claude(messages=turns).status_code == 200
    result = {"type": "tool_result", "tool_use_id": "call_1"}
    assert upstream.requests[0].json["messages"] == [
        {"role": "assistant", "content": [own, {**call, "id": "call_1"}]},
        {"role": "user", "content": [result]},
    ]


def test_a_body_that_is_too_deep_to_be_written_again_is_refused(claude, upstream):
    deep = b'{"model":"claude","model":"claude","x":' + b"[" * 1010 + b"]" * 1010 + b"}"
    response = claude(deep)
    assert response.status_code == 400
    assert "nested too deeply" in response.json()["error"]["message"]
    assert upstream.requests == []


# ── Responses ───────────────────────────────────────────────────────────────────────


def test_a_message_passes_but_for_the_name_of_its_model(claude, upstream, gateway):
    use = {**USE, "input": {"model": "claude-there"}}
    raw = json.dumps({**MESSAGE, "content": [use], "n": 1.0}, indent=1).encode()
    headers = {
        "request_id": "req_1",
        "anthropic_ratelimit_requests_remaining": "9",
        "anthropic_ratelimit_unified_status": "allowed",
        "anthropic_organization_id": "org-secret",
        "set_cookie": "a=b",
    }
    upstream.script = answers(raw, 200, **headers)
    response = claude()
    *before, last = raw.rpartition(b'"model": "claude-there",\n "content"')[::-1]
    assert response.content == last + b'"model": "claude",\n "content"' + before[0]
    assert response.headers["request-id"] == "req_1"
    assert response.headers["anthropic-ratelimit-requests-remaining"] == "9"
    assert response.headers["anthropic-ratelimit-unified-status"] == "allowed"
    assert not {"anthropic-organization-id", "set-cookie"} & {*response.headers}
    assert gateway.recorded().usage == Usage(17, 6, 5)


@pytest.mark.parametrize("answer", [{"type": "x"}, [], {**MESSAGE, "content": None}])
def test_what_is_no_message_is_a_failure(claude, upstream, answer):
    upstream.script = answers(answer)
    response = claude(headers=REQUEST_ID)
    assert response.status_code == 500
    assert response.json()["error"] == {"type": "api_error", "message": UPSTREAM}


@pytest.mark.parametrize("events", [BLOCK_STREAM, (*TEXT_STREAM, *stopped("end_turn"))])
def test_a_stream_passes_byte_for_byte(claude, upstream, gateway, events):
    odd = b'event: new_kind\ndata: {"type":"new_kind",  "a": 1.0}\n\n: a comment\n\n'
    first, *rest = map(named, events)
    upstream.script = sends(first, odd, *rest)
    response = claude(stream=True)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.headers["Cache-Control"] == "no-cache"
    whole = with_model("claude", *events)
    assert response.content == whole.replace(b"\n\n", b"\n\n" + odd, 1)
    context = gateway.recorded()
    assert (context.usage.prompt_tokens, context.usage.completion_tokens) == (25, 15)
    assert (context.status, context.error_status, context.ending) == (200, 0, "")


# ── Usage, tokens ───────────────────────────────────────────────────────────────────


def test_tokens_are_counted_by_the_upstream(claude, upstream, gateway):
    upstream.script = answers(b'{"input_tokens": 2095}')
    response = claude(path="/v1/messages/count_tokens?beta=true")
    assert response.content == b'{"input_tokens": 2095}'
    assert upstream.requests[0].path == "/v1/messages/count_tokens?beta=true"
    assert upstream.requests[0].json["model"] == "claude-there"
    context = gateway.recorded()
    assert (context.usage, context.is_estimated) == (None, False)


def test_text_with_escapes_is_counted_and_passes(claude, upstream, gateway):
    texts = ["a", "é", '"', "\\n", "漢字", "b"]
    deltas = [delta(0, type="text_delta", text=text) for text in texts]
    events = [started(), block(0, type="text", text=""), *deltas]
    upstream.script = sends(*map(named, events), None)
    content = claude(stream=True).content
    assert content.startswith(with_model("claude", *events))
    assert gateway.recorded().completion_characters == sum(map(len, texts))


# ── Errors, and streams that break ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "stream"),
    [(400, False), (400, True), (401, False), (404, False), (413, True), (429, True), (529, True)],
)  # fmt: skip
def test_an_error_passes_with_status_headers_and_every_byte(
    claude, upstream, status, stream
):
    body = json.dumps({**OVERLOADED, "n": 1.0}, indent=2).encode()
    upstream.script = answers(
        body, status, retry_after="7", x_should_retry="false", request_id="req_011"
    )
    response = claude(stream=stream)
    assert (response.status_code, response.content) == (status, body)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Retry-After"] == "7"
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["request-id"] == "req_011"


@pytest.mark.parametrize(("status", "passed"), [(502, 500), (429, 429)])
def test_a_page_of_a_proxy_is_a_failure(claude, upstream, status, passed):
    upstream.script = answers(b"<html>Bad Gateway</html>", status, retry_after="7")
    response = claude()
    assert (response.status_code, response.json()["type"]) == (passed, "error")
    assert ("Retry-After" in response.headers) == (status == 429)


def test_an_error_in_place_of_a_stream_is_an_ordinary_one(claude, upstream):
    upstream.script = sends(named(OVERLOADED))
    response = claude(stream=True)
    assert (response.status_code, response.json()) == (529, OVERLOADED)


def test_an_error_in_a_stream_passes_as_its_last_event(claude, upstream, gateway):
    upstream.script = sends_events(*TEXT_STREAM[:4], OVERLOADED, *stopped("end_turn"))
    *passed, last = claude(stream=True).content.split(b"\n\n")[:-1]
    assert b"\n\n".join(passed) + b"\n\n" == with_model("claude", *TEXT_STREAM[:4])
    name, _, data = last.partition(b"\ndata: ")
    assert (name, json.loads(data)) == (b"event: error", OVERLOADED)
    assert gateway.recorded().error_status == 500


@pytest.mark.parametrize("end", [(None,), ()], ids=["aborted", "whole"])
@pytest.mark.parametrize(
    "events",
    [
        TEXT_STREAM[:1],
        TEXT_STREAM[:4],
        TEXT_STREAM,
        (started(), {"type": "message_stop"}),
    ],
)
def test_a_stream_that_is_cut_off_ends_with_an_error(
    claude, upstream, gateway, events, end
):
    upstream.script = sends(*map(named, events), *end)
    *passed, last = claude(stream=True).content.split(b"\n\n")[:-1]
    assert b"\n\n".join(passed) + b"\n\n" == with_model("claude", *events)
    name, _, data = last.partition(b"\n")
    assert name == b"event: error"
    assert json.loads(data.removeprefix(b"data: "))["error"]["type"] == "api_error"
    context = gateway.recorded()
    assert context.error_status == 500
    usage, is_estimated = context.usage, context.is_estimated
    assert usage.prompt_tokens == 25
    assert is_estimated


def test_a_message_that_stopped_gets_its_last_event(claude, upstream, gateway):
    events = (*TEXT_STREAM, stopped("end_turn")[0])
    upstream.script = sends(*map(named, events), None)
    end = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    assert claude(stream=True).content == with_model("claude", *events) + end
    assert gateway.recorded().error_status == 0
