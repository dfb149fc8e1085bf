"""OpenAI's own client against both families of addresses, and what is beside the contract."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from subprocess import run
from typing import Any

import openai
import pytest

from gateway.configuration.shapes import Allow, Target
from tests.gateway.chat.harness import MESSAGES
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    TOOL_STREAM,
    USAGE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    Received,
    answers,
    chunk,
    event,
    sends,
)
from tests.running import PATIENCE_S
from tests.tools import node_packages

V1 = "/v1/chat/completions"


@pytest.fixture(params=["/v1", "/v2"])
def client(request, gateway, key):
    with openai.OpenAI(
        base_url=gateway.url + request.param, api_key=key, max_retries=0
    ) as openai_client:
        yield openai_client


def create(client, **fields: Any) -> Any:
    return client.chat.completions.create(model="small", messages=MESSAGES, **fields)


def test_the_client_reads_a_completion(client, upstream):
    upstream.script = answers(COMPLETION)
    completion = create(client)
    assert completion.choices[0].message.content == "Hello"
    assert completion.model == "small"
    assert completion.usage.prompt_tokens == 9


def test_the_client_reads_a_stream(client, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    chunks = list(create(client, stream=True, stream_options={"include_usage": True}))
    text = "".join(
        item.choices[0].delta.content or "" for item in chunks if item.choices
    )
    assert text == "Hello"
    assert chunks[-1].usage.completion_tokens == 2


def test_the_client_reads_streamed_tool_calls(client, upstream):
    upstream.script = sends(*TOOL_STREAM)
    tool = {"type": "function", "function": {"name": "tide", "parameters": {}}}
    calls = [
        call
        for item in create(client, stream=True, tools=[tool])
        for call in item.choices[0].delta.tool_calls or ()
    ]
    assert calls[0].function.name == "tide"
    assert json.loads(calls[1].function.arguments) == {"at": "Brest"}
    assert upstream.requests[0].json["tools"] == [tool]


@pytest.mark.parametrize("stream", [False, True])
def test_the_client_raises_its_own_errors(client, upstream, stream):
    upstream.script = answers({"error": {"message": "no messages"}}, 400)
    with pytest.raises(openai.BadRequestError) as refused:
        create(client, stream=stream)
    assert "no messages" in refused.value.response.text
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="absent", messages=[], stream=stream)
    upstream.script = answers({}, 503)
    with pytest.raises(openai.InternalServerError):
        create(client, stream=stream)


def test_the_client_is_told_when_a_stream_breaks(client, upstream):
    upstream.script = sends(STREAM[0], 0.02, None)
    with pytest.raises(openai.APIError):
        list(create(client, stream=True))


def test_the_asynchronous_client_reads_a_stream(gateway, upstream, key):
    upstream.script = sends(*WHOLE_STREAM)

    async def read() -> str:
        url = gateway.url + "/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            stream = await create(client, stream=True)
            return "".join(
                [
                    item.choices[0].delta.content or ""
                    async for item in stream
                    if item.choices
                ]
            )

    assert asyncio.run(read()) == "Hello"


@pytest.mark.parametrize("client", ["/v1"], indirect=True)
def test_the_client_lists_the_models_that_it_may_use(gateway, client):
    gateway.declare(name="theirs", allow=Allow(everyone=False))
    assert [item.id for item in client.models.list()] == ["small"]


@pytest.mark.parametrize("client", ["/v1"], indirect=True)
def test_the_client_reads_embeddings(gateway, client, upstream):
    gateway.declare(name="vectors", inference_type="embedding")
    upstream.script = answers(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}],
            "model": "upstream-model",
            "usage": {"prompt_tokens": 4, "total_tokens": 4},
        }
    )
    found = client.embeddings.create(
        model="vectors", input="x", encoding_format="float"
    )
    assert found.data[0].embedding == [0.5, 1.0]
    assert found.model == "vectors"
    assert upstream.requests[0].path == "/v1/embeddings"
    usage = gateway.kept.ended[0].usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (4, 0)


# ── /v1 as it is on the wire ────────────────────────────────────────────────────────


def test_v1_keeps_nulls_and_says_done(gateway, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    *chunks, last = gateway.stream(path=V1)
    assert last == "[DONE]"
    assert [item["choices"][0]["finish_reason"] for item in chunks] == [
        None,
        None,
        "stop",
    ]
    assert chunks[0] == {**chunk("Hel"), "model": "small"}


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize(
    "choices", [[], None, [{"index": 0, "delta": {}}], [{"finish_reason": None}]]
)
def test_v1_forwards_usage_only_to_a_client_that_asked(
    gateway, upstream, wanted, choices
):
    usage = event({**USAGE_CHUNK, "choices": choices})
    upstream.script = sends(*STREAM, usage, DONE)
    options = {"stream_options": {"include_usage": True}} if wanted else {}

    events = gateway.stream(path=V1, **options)

    usages = [item["usage"] for item in events[:-1] if item.get("usage")]
    assert usages == ([USAGE] if wanted else [])
    assert upstream.requests[0].json["stream_options"] == {"include_usage": True}
    assert gateway.settled(lambda: gateway.kept.ended)
    assert gateway.kept.ended[0].usage.prompt_tokens == 9


def test_usage_beside_a_text_is_forwarded_with_it(gateway, upstream):
    upstream.script = sends(event(chunk("Hel", usage=USAGE)), *STREAM[1:], DONE)
    first, *_ = gateway.stream(path=V1)
    assert (first["choices"][0]["delta"], first["usage"]) == ({"content": "Hel"}, USAGE)


def test_v1_tells_a_broken_stream_as_openai_does(gateway, upstream):
    upstream.script = sends(STREAM[0], 0.02, None)
    last = gateway.stream(path=V1, headers={"X-Request-Id": "req-7"})[-1]
    assert last["error"]["message"] == "Upstream service error for request_id req-7"
    assert last["error"]["type"] == "server_error"


@pytest.mark.parametrize(
    ("fields", "status", "kind", "code", "param"),
    [
        ({"model": "absent"}, 404, "not_found_error", "model_not_found", "model"),
        ({"model": 5}, 400, "invalid_request_error", None, None),
        ({"model": 5, "stream": 5}, 400, "invalid_request_error", None, None),
    ],
)
def test_v1_errors_have_openais_shape(gateway, fields, status, kind, code, param):
    response = gateway.post(path=V1, **fields)
    error = response.json()["error"]
    assert response.status_code == status
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"], error["param"]) == (kind, code, param)
    assert isinstance(error["message"], str)


def test_v1_without_identity_is_an_authentication_error(gateway):
    response = gateway.post(path=V1, headers={"X-Forwarded-For": "10.0.0.1"})
    assert response.status_code == 401
    assert response.json()["error"]["type"] == "authentication_error"


def test_chat_is_not_for_embedding_endpoints_and_the_reverse(gateway, upstream):
    path = "/v1/embeddings"
    error = gateway.post(path=path).json()["error"]
    assert error["message"] == "Unsupported inference type: chat"
    for kind in ("echo", "anthropic"):
        gateway.declare(name="words", inference_type="embedding", upstream=kind)
        error = gateway.post(path=path, model="words").json()["error"]
        assert error["message"] == "Endpoint does not support request: embeddings"


# ── OpenAI's client for Node ────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def node() -> Path:
    """The folder of the client for Node."""
    return node_packages(Path(__file__).parent / "node")


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("prefix", ["/v1", "/v2"])
def test_the_client_for_node_reads_all_of_it(gateway, upstream, key, node, prefix):
    async def script(request: Received) -> None:
        model = request.json["model"]
        if model == "refusing":
            await answers({"error": {"message": "no"}}, 400)(request)
        elif request.json.get("stream"):
            parts = (STREAM[0], 0.05, None) if model == "broken" else WHOLE_STREAM
            await sends(*parts)(request)
        else:
            await answers(COMPLETION)(request)

    upstream.script = script
    for name in ("refusing", "broken"):
        gateway.declare(name=name, targets=(Target(upstream.url, name),))

    command = ["node", "chat.mjs", gateway.url + prefix, key]
    done = run(
        command,
        cwd=node,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "whole": "Hello",
        "model": "small",
        "text": "Hello",
        "tokens": 2,
        "broken": "Hel|APIError",
        "absent": {"status": 404, "kind": "NotFoundError"},
        "refused": {"status": 400, "kind": "BadRequestError"},
        "knows": ["BadRequestError", "NotFoundError"],
    }
