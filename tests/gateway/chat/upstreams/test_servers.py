"""What each server with OpenAI's API does in another way, as recorded from it, and its sample."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gateway import configuration
from gateway.chat.upstreams.servers import PLATFORM, SERVERS
from gateway.configuration.shapes import ModelEntry, Target
from tests.docs.samples import DOCS, sample
from tests.gateway.chat.harness import STREAM_OR_NOT, V1
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    USAGE,
    answers,
    chunk,
    event,
    greeting,
    sends,
)

PAGE = (DOCS / "upstreams.md").read_text()
SAMPLES = re.findall(r"^```yaml ([\w-]+)$", PAGE, re.MULTILINE)
KEYS = re.findall(r"\$\{(\w+)\}", PAGE)


def loaded(name: str, tmp_path: Any, monkeypatch: Any) -> ModelEntry:
    """Return the first entry of a sample, after the command that the page names."""
    for key in KEYS:
        monkeypatch.setenv(key, "sk-1")
    file = tmp_path / "gateway.yaml"
    file.write_text(sample("upstreams.md", "yaml", name))
    return configuration.load(file).models[0]


def test_each_server_has_a_sample_and_a_line():
    assert set(SAMPLES) == set(SERVERS)
    table = PAGE.partition("|---|")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([\w-]+)`", "\n".join(
        line.split("|")[1] for line in table.splitlines()[1:]
    ))) == set(SERVERS)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_sound(name, tmp_path, monkeypatch):
    assert loaded(name, tmp_path, monkeypatch).server == name


# What a call of the sample's entry is: its path, and the header with the key.
CHAT = "/chat/completions"
DEPLOYMENT = "/openai/deployments/my-deployment/chat/completions"
CALLS = [
    (sample, "openai", CHAT, "authorization"),
    (sample, "azure", f"{DEPLOYMENT}?api-version=2024-12-01-preview", "api-key"),
    (sample, "azure-v1", CHAT, "api-key"),
    (sample, "openrouter", CHAT, "authorization"),
    (sample, "groq", CHAT, "authorization"),
    (sample, "mistral", CHAT, "authorization"),
    (sample, "gemini", CHAT, "authorization"),
    (sample, "vllm", CHAT, ""),
    (sample, "ollama", CHAT, ""),
    (sample, "llamacpp", CHAT, ""),
]


@STREAM_OR_NOT
@pytest.mark.parametrize(("read", "name", "path", "header"), CALLS)
def test_a_call_goes_where_the_server_expects_it(
    gateway, upstream, load, read, name, path, header, stream
):
    keys = dict.fromkeys(KEYS, "sk-1")
    entry = load(read("upstreams.md", "yaml", name), **keys).models[0]
    [target, *_] = entry.targets
    base = upstream.url.removesuffix("/v1")
    gateway.declare(
        server=entry.server,
        targets=(Target(base, target.model, target.api_key),),
        api_version=entry.api_version,
        drop_params=entry.drop_params,
        extra_headers=entry.extra_headers,
        extra_body=entry.extra_body,
    )
    upstream.script = greeting(stream=stream)
    # What the clients of OpenAI send besides.
    sent = {"store": False, "seed": 7, "user": "u", "max_completion_tokens": 9}
    response = gateway.post(path=V1, stream=stream, **sent)
    assert response.status_code == 200, response.text
    request = upstream.requests[0]
    assert request.path == path
    credentials = {"authorization", "api-key"} & request.headers.keys()
    assert credentials == ({header} if header else set())
    if header:
        assert request.headers[header].removeprefix("Bearer ") == "sk-1"
    if name == "openrouter":
        assert request.headers["http-referer"] == "https://example.com"
        assert request.json["provider"] == {"sort": "throughput"}
    server = SERVERS[name]
    expected = {server.renamed.get(key, key) for key in sent}
    if entry.drop_params is True:
        expected -= server.lacks
    known = {*expected, "model", "messages", "stream", *entry.extra_body}
    if stream and server.takes_stream_options:
        known.add("stream_options")
    assert request.json.keys() == known


def test_mistral_gets_its_own_names_and_on_request_no_others(gateway, upstream):
    upstream.script = answers(COMPLETION)
    gateway.declare(server="mistral")
    assert gateway.post(prompt_cache_key="k", seed=1).status_code == 200
    body = upstream.requests[0].json
    assert (body["random_seed"], body["prompt_cache_key"]) == (1, "k")
    gateway.declare(server="mistral", drop_params=True)
    limits = {"max_tokens": 4, "max_completion_tokens": 5}
    assert gateway.post(**dict.fromkeys(PLATFORM, "x"), **limits).status_code == 200
    sent = upstream.requests[1].json
    assert sent.keys() == {"model", "messages", "max_tokens", "metadata"}
    assert sent["max_tokens"] == 4  # the server's own name wins


def test_mistrals_usage_comes_unasked(gateway, upstream):
    gateway.declare(server="mistral")
    upstream.script = sends(STREAM[0], event(chunk(finish="stop", usage=USAGE)), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE
    assert gateway.recorded().usage.prompt_tokens == 9


def test_groqs_usage_is_in_its_own_field(gateway, upstream):
    gateway.declare(server="groq")
    last = chunk(finish="stop", x_groq={"id": "req_1", "usage": USAGE})
    upstream.script = sends(STREAM[0], event(last), DONE)
    gateway.stream(path=V1)
    assert gateway.recorded().usage.completion_tokens == 2
