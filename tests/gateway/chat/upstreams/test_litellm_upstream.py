"""A server that no one here wrote as the upstream: LiteLLM's proxy with answers of its own.

`make bench-peers` installs it, into an environment of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import openai
import pytest
from django.conf import settings

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, STREAM_OR_NOT, events_of, text_of
from tests.running import environment, free_port, listens, until

PROGRAM = settings.BASE_DIR / "var" / "bench-peers" / "litellm" / "bin" / "litellm"
KEY = "sk-0123456789abcdef0123456789abcdef"
SAID = "Twelve ships are in the harbour tonight."
PATIENCE_S = 150

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("litellm"),
    pytest.mark.skipif(
        not PROGRAM.exists(), reason="LiteLLM is not installed: make bench-peers"
    ),
]


@pytest.fixture(scope="module")
def litellm(tmp_path_factory) -> Iterator[str]:
    """The base address of a LiteLLM proxy that makes up its answers."""
    folder: Path = tmp_path_factory.mktemp("litellm")
    config, port = folder / "config.yaml", free_port()
    made_up = {"model": "openai/any", "api_key": "x", "mock_response": SAID}
    busy = made_up | {"mock_response": "litellm.RateLimitError"}
    models = [
        {"model_name": "ships", "litellm_params": made_up},
        {"model_name": "busy", "litellm_params": busy},
    ]
    settings_ = {"num_retries": 0}
    config.write_text(json.dumps({"model_list": models, "litellm_settings": settings_}))
    variables = environment(
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        LITELLM_TELEMETRY="False",
        LITELLM_MASTER_KEY=KEY,
    )
    address = ["--host", "127.0.0.1", "--port", str(port)]
    process = Popen(
        [str(PROGRAM), "--config", str(config), *address],
        env=variables,
        cwd=folder,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        until(lambda: listens(port), "LiteLLM listens", seconds=PATIENCE_S)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def declared(gateway, litellm):
    slow = {"first_byte_s": 60, "idle_s": 60, "total_s": 120}
    for name, model in (("ships", "ships"), ("busy", "busy"), ("absent", "nothing")):
        targets = (Target(litellm, model, KEY),)
        gateway.declare(name=name, targets=targets, timeouts=slow)
    return gateway


def test_a_completion_comes_through_with_its_usage(declared):
    response = declared.post(model="ships")

    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == SAID
    assert response.json()["model"] == "ships"
    (context,) = declared.kept.ended
    assert context.usage.completion_tokens > 0


def test_a_stream_comes_through_and_its_last_chunk_tells_the_usage(declared):
    response = declared.post(model="ships", stream=True)

    chunks = events_of(response.content)
    assert text_of(chunks) == SAID
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert {chunk["model"] for chunk in chunks} == {"ships"}


def test_openais_client_reads_a_stream_from_there(declared, key):
    with openai.OpenAI(base_url=declared.url + "/v1", api_key=key) as client:
        ask: Any = client.chat.completions.create
        options = {"include_usage": True}
        chunks = list(
            ask(model="ships", messages=MESSAGES, stream=True, stream_options=options)
        )
    text = "".join(
        chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices
    )
    assert text == SAID
    assert chunks[-1].usage is not None


@STREAM_OR_NOT
def test_what_it_refuses_is_a_bad_request_with_its_words(declared, stream):
    response = declared.post(model="absent", stream=stream)
    assert response.status_code == 400
    assert "nothing" in response.json()["detail"]


@STREAM_OR_NOT
def test_its_troubles_are_the_upstreams(declared, stream):
    response = declared.post(model="busy", stream=stream)
    assert response.status_code == 500
    assert KEY not in response.text
