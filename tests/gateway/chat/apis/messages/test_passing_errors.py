"""Errors of upstreams of Anthropic's own kind, and streams that break."""

import json

import pytest

from tests.gateway.chat.mock_upstream import answers, sends
from tests.gateway.chat.upstreams.anthropic_events import (
    OVERLOADED,
    TEXT_STREAM,
    named,
    sends_events,
    started,
    stopped,
    with_model,
)


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
