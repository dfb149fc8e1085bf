"""Responses of an upstream that has the API itself: as they came, but for the model's name."""

from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.apis.responses.harness import (
    COMPLETED,
    CREATED,
    DELTA,
    RESPONSE,
    create,
    in_progress,
    kinds,
    part,
)
from tests.gateway.chat.harness import (
    INTERNAL,
    REQUEST_ID,
    STREAM_OR_NOT,
    UPSTREAM,
    named_events_of,
)
from tests.gateway.chat.mock_upstream import DONE, answers, event, sends


@pytest.fixture
def passing(gateway) -> Any:
    gateway.declare(speaks=frozenset({"chat", "responses"}))
    return gateway


def events_in(response: Any) -> list[Any]:
    assert response.status_code == 200, response.text
    return named_events_of(response.content)


def test_a_stream_can_end_incomplete_or_with_done(passing, upstream):
    response = {**RESPONSE, "status": "incomplete"}
    end = part("incomplete", 2, response=response)
    upstream.script = sends(CREATED, DELTA, end, DONE)
    assert kinds(events_in(create(passing, stream=True)))[-1] == "incomplete"


@STREAM_OR_NOT
def test_a_response_in_the_background_is_refused(passing, upstream, stream):
    response = create(passing, background=True, stream=stream)
    assert response.status_code == 400
    text = ("Endpoint does not support request: " * (not stream)) + "background: true"
    assert response.json()["error"]["message"] == text
    assert not upstream.requests


def failed(code: str, message: str = "secret") -> bytes:
    error = {"code": code, "message": message}
    return part("failed", 2, response=in_progress(status="failed", error=error))


@pytest.mark.parametrize("code", ["server_error", "insufficient_quota"])
def test_a_failure_before_any_part_lets_another_target_answer(passing, upstream, code):
    bad, good = sends(CREATED, failed(code)), sends(CREATED, DELTA, COMPLETED)
    targets = Target(upstream.url, "a", weight=1000), Target(upstream.url, "b")
    passing.declare(speaks=frozenset({"chat", "responses"}), targets=targets)

    async def script(request: Any) -> None:
        is_first = len(upstream.requests) == 1
        await (bad if is_first else good)(request)

    upstream.script = script
    assert kinds(events_in(create(passing, stream=True)))[-1] == "completed"
    assert len(upstream.requests) == 2


def test_a_failure_that_is_alone_is_an_ordinary_error(passing, upstream):
    upstream.script = sends(CREATED, failed("rate_limit_exceeded"))
    response = create(passing, stream=True)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (429, "rate_limit_exceeded")
    assert "secret" not in response.text
    upstream.script = sends(
        event({"type": "error", "code": "server_error", "message": "s"})
    )
    response = create(passing, stream=True)
    assert (response.status_code, response.json()["error"]["message"]) == (
        500,
        INTERNAL,
    )


@pytest.mark.parametrize("end", [failed("server_error"), None, b""])
def test_a_failure_after_it_keeps_the_response(passing, upstream, end):
    upstream.script = sends(CREATED, DELTA, 0.02, end)
    response = create(passing, stream=True, headers=REQUEST_ID)
    last = events_in(response)[-1]
    assert (last["type"], last["sequence_number"]) == ("response.failed", 2)
    assert last["response"]["id"] == "resp_1"
    assert last["response"]["model"] == "small"
    assert last["response"]["error"] == {"code": "server_error", "message": UPSTREAM}
    assert passing.recorded().error_status == 500


def test_a_request_that_is_too_long_keeps_its_code(passing, upstream):
    upstream.script = sends(CREATED, failed("context_length_exceeded", "too long"))
    last = events_in(create(passing, stream=True))[-1]
    error = {"code": "context_length_exceeded", "message": "too long"}
    assert last["response"]["error"] == error


@STREAM_OR_NOT
def test_a_stream_or_response_without_an_answer_is_a_failure(passing, upstream, stream):
    values: list[Any] = [{}, {"output": None}, {"error": {"code": "server_error"}}, []]
    for value in values:
        upstream.script = sends(event(value)) if stream else answers(value)
        assert create(passing, stream=stream).status_code == 500
    if stream:
        upstream.script = sends(CREATED)
        assert create(passing, stream=True).status_code == 500
