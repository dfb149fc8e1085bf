"""What an entry leaves out of its requests, and what it adds: fields, headers, a proxy."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES, REQUEST_ID, STREAM_OR_NOT, V1
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    answers,
    greeting,
)
from tests.gateway.chat.upstreams.anthropic_events import MESSAGE
from tests.loops import Loop

# What default clients send and Anthropic's API does not have.
FOREIGN: dict[str, Any] = {
    "seed": 7,
    "store": True,
    "prompt_cache_key": "k",
    "response_format": {"type": "json_object"},
    "logit_bias": {"1": 2},
    "n": 2,
    "service_tier": "flex",
    "metadata": {"trace": "1"},
    "stream_options": {"include_obfuscation": True},
    "verbosity": "low",
    "web_search_options": {},
    "whatever": [1],
}


@pytest.fixture
def ask(gateway, upstream):
    """Declare an endpoint of a kind and send it a request; return what the upstream got."""

    def post(kind: str, body: dict[str, Any], **fields: Any) -> Any:
        target = Target(upstream.url, "there", "sk-1")
        gateway.declare(upstream=kind, targets=(target,), **fields)
        upstream.script = answers(COMPLETION if kind == "openai" else MESSAGE)
        upstream.requests.clear()
        response = gateway.post(path=V1, headers=REQUEST_ID, **body)
        assert response.status_code == 200, response.text
        return upstream.requests[0]

    return post


@pytest.mark.parametrize("names", [*([name] for name in FOREIGN), [*FOREIGN]])
def test_what_anthropic_does_not_have_is_left_out(ask, gateway, names):
    body = {name: FOREIGN[name] for name in names}
    sent = ask("anthropic", {**body, "temperature": 0.5}, drop_params=True).json
    assert sent == ask("anthropic", {"temperature": 0.5}).json
    gateway.declare(upstream="anthropic")
    assert gateway.post(path=V1, **body).status_code == 400


def test_other_refusals_stay(gateway, upstream):
    gateway.declare(upstream="anthropic", drop_params=True)
    refused: list[dict[str, Any]] = [
        {"tools": [{"type": "retrieval"}]},
        {"messages": [{"role": "user", "name": "ada", "content": "x"}]},
        {"max_tokens": 1, "max_completion_tokens": 2},
        {"reasoning_effort": "none", "thinking": {"type": "adaptive"}},
    ]
    for body in refused:
        assert gateway.post(**body).status_code == 400
    assert not upstream.requests


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_named_fields_are_left_out_of_every_request(ask, gateway, kind):
    names = ("seed", "temperature")
    sent = ask(kind, {"seed": 1, "temperature": 1, "top_p": 0.5}, drop_params=names)
    assert "seed" not in sent.json
    assert "temperature" not in sent.json
    assert sent.json["top_p"] == 0.5
    if kind == "anthropic":
        assert gateway.post(n=2).status_code == 400  # it is not named


def test_an_openai_upstream_gets_every_field_unless_told_otherwise(ask):
    for drop_params in (False, True):
        sent = ask("openai", FOREIGN, drop_params=drop_params).json
        assert {name: sent[name] for name in FOREIGN} == FOREIGN


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_extra_fields_are_added_and_win(ask, kind):
    extra = {"top_p": 0.1, "provider": {"order": ["a"]}, "max_tokens": 9}
    sent = ask(kind, {"top_p": 0.9}, extra_body=extra).json
    assert {name: sent[name] for name in extra} == extra
    assert sent["model"] == "there"


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_extra_headers_are_added_and_win(ask, kind):
    extra = {"X-Title": "Harbour", "AUTHORIZATION": "Own", "X-API-Key": "own"}
    headers = ask(kind, {}, extra_headers=extra).headers
    assert headers["x-title"] == "Harbour"
    assert (headers["authorization"], headers["x-api-key"]) == ("Own", "own")
    assert headers["x-request-id"] == "req-7"


@STREAM_OR_NOT
def test_numbers_keep_their_text_beside_extra_fields(gateway, upstream, stream):
    gateway.declare(extra_body={"provider": 1}, drop_params=("seed",))
    upstream.script = greeting(stream=stream)
    flag = "true" if stream else "false"
    body = f'{{"model":"small","seed":1,"top_p":1.0,"k":18446744073709551616,"stream":{flag}}}'
    assert gateway.post(body).status_code == 200
    sent = upstream.requests[0].body
    assert b'"top_p":1.0' in sent
    assert b'"k":18446744073709551616' in sent
    assert b"seed" not in sent


# ── Proxies ─────────────────────────────────────────────────────────────────────────


class Proxy:
    """A forward proxy that asks the mock upstream whatever host a request names."""

    def __init__(self, loop: Loop, port: int) -> None:
        self._loop, self._port = loop, port
        self.lines: list[str] = []
        self.credentials: list[str] = []
        self._server: asyncio.Server
        self._server = loop.run(asyncio.start_server(self._serve, "127.0.0.1", 0))

    @property
    def url(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"http://ada:secret@127.0.0.1:{port}"

    async def _serve(self, reader: Any, writer: Any) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.lines.append(lines[0])
        self.credentials += [
            line for line in lines if line.lower().startswith("proxy-authorization")
        ]
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        path = lines[0].split()[1].partition("://")[2].partition("/")[2]
        lines[0] = f"POST /{path} HTTP/1.1"
        up_writer.write("\r\n".join(lines).encode())
        pumps = (_pump(reader, up_writer), _pump(up_reader, writer))
        await asyncio.gather(*pumps, return_exceptions=True)

    def stop(self) -> None:
        async def close() -> None:
            self._server.close()

        self._loop.run(close())


async def _pump(reader: Any, writer: Any) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@STREAM_OR_NOT
def test_an_entry_has_its_own_proxy(gateway, upstream, loops, stream):
    proxy = Proxy(loops[1], upstream.port)
    target = Target("http://models.example/v1", "there", "sk-1")
    gateway.declare(targets=(target,), proxy=proxy.url)
    upstream.script = greeting(stream=stream)
    response = gateway.post(stream=stream, messages=MESSAGES)
    assert response.status_code == 200, response.text
    assert proxy.lines == ["POST http://models.example/v1/chat/completions HTTP/1.1"]
    assert len(proxy.credentials) == 1
    assert upstream.requests[0].headers["host"] == "models.example"
    proxy.stop()


def test_a_proxy_that_is_down_is_a_failure_and_shows_no_login(gateway, caplog):
    gateway.declare(proxy="http://ada:hush@127.0.0.1:1")
    response = gateway.post()
    assert response.status_code == 500
    assert "hush" not in caplog.text + response.text
