"""The operator's function: it sees each request before its call, changes it or denies it."""

import json
from typing import Any

import pytest
from django.core.checks import run_checks

from gateway.chat.policy_hook import PolicyDenied, configured, policy_of
from gateway.identity import Caller
from tests.gateway.chat.harness import INTERNAL, REQUEST_ID, STREAM_OR_NOT
from tests.gateway.chat.mock_upstream import COMPLETION, answers

REASON = "Nothing about falcon-9."


def check(caller: Caller, model: str, body: dict[str, Any]) -> dict[str, Any]:
    """The function that a test names in the settings."""
    if caller.principal == "ada" and model == "small" and body.get("user") == "spy":
        raise PolicyDenied(REASON)
    return {**body, "user": "masked"}


@pytest.fixture(autouse=True)
def _policy(gateway, settings) -> None:
    settings.GATEWAY_CHAT_POLICY = f"{__name__}.check"
    gateway.change(policy=configured())


@STREAM_OR_NOT
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/v2/chat/completions", lambda body: body["detail"]),
        ("/v1/responses", lambda body: body["error"]["message"]),
        ("/v1/messages", lambda body: body["error"]["message"]),
    ],
)
def test_a_denied_request_is_400_and_goes_to_no_upstream(
    gateway, upstream, path, text, stream
):
    refused = gateway.post(path=path, user="spy", stream=stream, input="x")
    assert (refused.status_code, text(refused.json())) == (400, REASON)
    assert upstream.requests == []
    action = path.removeprefix("/v2/").removeprefix("/v1/").replace("/", ".")
    assert gateway.kept.denied == [(action, "small", REASON)]
    assert gateway.recorded().status == 400


@pytest.mark.parametrize("is_async", [False, True])
def test_what_the_function_returns_is_the_body(gateway, upstream, is_async):
    async def later(*arguments: Any) -> dict[str, Any]:
        return check(*arguments)

    gateway.change(policy=policy_of(later if is_async else check))
    upstream.script = answers(COMPLETION)
    assert gateway.post(temperature=0).status_code == 200
    sent = json.loads(upstream.requests[0].body)
    assert (sent["user"], sent["temperature"], sent["model"]) == (
        *("masked", 0),
        "upstream-model",
    )


def test_a_function_that_fails_is_500_and_calls_no_upstream(gateway, upstream):
    gateway.change(policy=policy_of(lambda *_: {"a": 1}["absent"]))
    refused = gateway.post(headers=REQUEST_ID)
    assert (refused.status_code, refused.json()) == (500, {"detail": INTERNAL})
    assert upstream.requests == []


@pytest.mark.parametrize(
    ("path", "fault"),
    [("absent.function", "cannot be imported"), (f"{__name__}.REASON", "is nothing that can be called")],
)  # fmt: skip
def test_a_wrong_name_is_an_error_at_the_start(settings, path, fault):
    settings.GATEWAY_CHAT_POLICY = path
    (error,) = [item for item in run_checks() if item.id == "gateway_chat.E001"]
    assert fault in error.msg
