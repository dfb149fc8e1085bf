"""What each server with OpenAI's API does in another way, as recorded from it, and its sample."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from gateway import configuration
from gateway.chat.upstreams.servers import PLATFORM, SERVERS
from gateway.configuration.shapes import ModelEntry, Target
from tests.docs.samples import DOCS, sample
from tests.gateway.chat.harness import STREAM_OR_NOT, V1, text_of
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    HEAD,
    STREAM,
    USAGE,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
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
    out = StringIO()
    call_command("check_gateway_config", str(file), stdout=out)
    assert "sound" in out.getvalue()
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
    upstream.script = sends(*WHOLE_STREAM) if stream else answers(COMPLETION)
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


def test_mistrals_refusal_of_an_unknown_field_is_told(gateway, upstream):
    gateway.declare(server="mistral")
    fault = {
        "type": "extra_forbidden",
        "loc": ["body", "prompt_cache_key"],
        "msg": "Extra inputs are not permitted",
        "input": "k",
    }
    upstream.script = answers(
        {"object": "error", "message": {"detail": [fault]}, "type": "invalid_request_error"},
        422,
    )  # fmt: skip
    response = gateway.post(prompt_cache_key="k", seed=1, stream=True)
    assert response.status_code == 400
    assert "body.prompt_cache_key: Extra inputs" in response.json()["detail"]
    body = upstream.requests[0].json
    assert (body["random_seed"], body["prompt_cache_key"]) == (1, "k")
    assert "stream_options" not in body
    gateway.declare(server="mistral", drop_params=True)
    upstream.script = answers(COMPLETION)
    fields = dict.fromkeys(PLATFORM, "x") | {
        "max_tokens": 4,
        "max_completion_tokens": 5,
    }
    assert gateway.post(**fields).status_code == 200
    sent = upstream.requests[1].json
    assert sent.keys() == {"model", "messages", "max_tokens", "metadata"}
    assert sent["max_tokens"] == 4  # the server's own name wins


def test_mistrals_usage_comes_unasked(gateway, upstream):
    gateway.declare(server="mistral")
    upstream.script = sends(STREAM[0], event(chunk(finish="stop", usage=USAGE)), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE
    assert gateway.recorded().usage.prompt_tokens == 9


def test_geminis_list_of_errors_is_a_refusal(gateway, upstream):
    gateway.declare(server="gemini")
    error = {
        "code": 400,
        "message": 'Invalid JSON payload received. Unknown name "store": Cannot find field.',
        "status": "INVALID_ARGUMENT",
    }
    upstream.script = answers([{"error": error}], 400)
    response = gateway.post(store=False)
    assert (response.status_code, response.json()["detail"]) == (400, error["message"])
    gateway.declare(server="gemini", drop_params=True)
    upstream.script = answers(COMPLETION)
    assert gateway.post(store=False, seed=1).status_code == 200
    assert upstream.requests[1].json.keys() == {"model", "messages"}


def test_groqs_usage_is_in_its_own_field(gateway, upstream):
    gateway.declare(server="groq")
    last = chunk(finish="stop", x_groq={"id": "req_1", "usage": USAGE})
    upstream.script = sends(STREAM[0], event(last), DONE)
    gateway.stream(path=V1)
    assert gateway.recorded().usage.completion_tokens == 2


def test_openrouters_comments_are_skipped_and_its_errors_are_failures(
    gateway, upstream
):
    targets = Target(upstream.url, "a", weight=1000), Target(upstream.url, "b")
    gateway.declare(server="openrouter", targets=targets)
    error = {"code": 502, "message": "Provider returned error"}
    failed = {
        "index": 0,
        "delta": {"content": ""},
        "finish_reason": "error",
        "error": error,
    }
    scripts = [
        sends(b": OPENROUTER PROCESSING\n\n", event({**HEAD, "choices": [failed]})),
        sends(b": OPENROUTER PROCESSING\n\n", *WHOLE_STREAM),
    ]  # fmt: skip

    async def script(request: Any) -> None:
        await scripts[min(len(upstream.requests), 2) - 1](request)

    upstream.script = script
    assert text_of(gateway.stream()) == "Hello"
    assert len(upstream.requests) == 2


@pytest.mark.parametrize(
    ("server", "data"),
    [
        ("vllm", event({"object": "error", "message": "x", "type": "E", "code": 500})),
        (
            "llamacpp",
            b'error: {"code": 500, "message": "x", "type": "server_error"}\n\n',
        ),
    ],
)
def test_a_failure_in_the_middle_of_a_stream_is_one(gateway, upstream, server, data):
    gateway.declare(server=server)
    upstream.script = sends(STREAM[0], 0.02, data)
    assert gateway.stream()[-1]["error"]["status_code"] == 500


def test_llamacpps_limit_leads_to_another_entry(gateway, upstream):
    gateway.declare(server="llamacpp", context_fallbacks=("long",))
    gateway.declare("long", targets=(Target(upstream.url, "long"),))
    error = {"code": 400, "message": "too long", "type": "exceed_context_size_error"}

    async def script(request: Any) -> None:
        is_long = request.json["model"] == "long"
        await (answers(COMPLETION) if is_long else answers({"error": error}, 400))(
            request
        )

    upstream.script = script
    assert gateway.post().headers["X-Signpost-Model"] == "long"
