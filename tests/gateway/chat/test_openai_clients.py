"""OpenAI's own clients against both families of addresses, and /v1 on the wire."""

import json
from pathlib import Path

import pytest

from gateway.chat.tokens import Usage
from gateway.configuration.shapes import Target
from tests.gateway.chat import clients_matrix as matrix
from tests.gateway.chat.harness import V1
from tests.gateway.chat.mock_upstream import (
    DONE,
    STREAM,
    USAGE,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    sends,
)
from tests.tools import node_packages, output_of


def test_the_client_reads_embeddings(gateway, client, upstream):
    gateway.declare(name="vectors", inference_type="embedding")
    item = {"object": "embedding", "index": 0, "embedding": [0.5, 1.0]}
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    upstream.script = answers(
        {"object": "list", "data": [item], "model": "upstream-model", "usage": usage}
    )
    response = client.embeddings.create(
        model="vectors", input="x", encoding_format="float"
    )
    assert response.data[0].embedding == [0.5, 1.0]
    assert response.model == "vectors"
    assert upstream.requests[0].path == "/v1/embeddings"
    context = gateway.recorded()
    assert (context.usage, context.is_estimated) == (Usage(4, 0), False)


# ── /v1 as it is on the wire ────────────────────────────────────────────────────────


def test_v1_keeps_nulls_and_says_done(gateway, upstream):
    upstream.script = sends(*WHOLE_STREAM)
    *chunks, last = gateway.stream(path=V1)
    assert last == "[DONE]"
    reasons = [item["choices"][0]["finish_reason"] for item in chunks]
    assert reasons == [None, None, "stop"]
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
    assert gateway.recorded().usage.prompt_tokens == 9


def test_usage_beside_a_text_is_forwarded_with_it(gateway, upstream):
    upstream.script = sends(event(chunk("Hel", usage=USAGE)), *STREAM[1:], DONE)
    first, *_ = gateway.stream(path=V1)
    assert (first["choices"][0]["delta"], first["usage"]) == ({"content": "Hel"}, USAGE)


def test_v1_tells_several_faults_as_one_text(gateway):
    error = gateway.post(path=V1, model=5, stream=5).json()["error"]
    assert isinstance(error["message"], str)


def test_embeddings_are_of_upstreams_with_openais_api(gateway):
    path = "/v1/embeddings"
    for kind in ("echo", "anthropic"):
        gateway.declare(name="words", inference_type="embedding", upstream=kind)
        error = gateway.post(path=path, model="words").json()["error"]
        assert error["message"] == "Endpoint does not support request: embeddings"


# ── OpenAI's client for Node ────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["/v1", "/v2"])
def test_the_client_for_node_reads_all_of_it(gateway, upstream, key, prefix):
    upstream.script = matrix.answer
    for name in ("refusing", "broken"):
        gateway.declare(name=name, targets=(Target(upstream.url, name),))

    folder = node_packages(Path(__file__).parent / "node")
    output = output_of(["node", "chat.mjs", gateway.url + prefix, key], cwd=folder)
    assert json.loads(output) == {
        "whole": "Hello",
        "model": "small",
        "text": "Hello",
        "tokens": 2,
        "broken": "Hel|APIError",
        "absent": {"status": 404, "kind": "NotFoundError"},
        "refused": {"status": 400, "kind": "BadRequestError"},
        "knows": ["BadRequestError", "NotFoundError"],
    }
