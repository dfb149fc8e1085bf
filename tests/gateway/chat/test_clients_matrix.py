"""Every client in each of its shapes, at upstreams of each kind; the page shows what they did."""

from __future__ import annotations

from contextlib import closing
from importlib.metadata import version
from typing import Any

import pytest
from django.conf import settings

from gateway.configuration.shapes import Target
from tests.gateway.chat import clients_matrix as matrix

pytestmark = pytest.mark.slow
PAGE = settings.BASE_DIR / "docs" / "clients-matrix.md"
# What the configuration says of the upstream of each kind.
KINDS: dict[str, dict[str, Any]] = {
    "openai": {},
    "openai, responses: true": {"responses": True},
    "anthropic": {"upstream": "anthropic"},
    "echo": {"upstream": "echo"},
}
HEAD = """\
# Clients and the shapes that they speak

Each row is a client that talks to the gateway on a socket, which calls an upstream of this kind. *at once* and *stream*
are a question and its answer. *tools* are a call and its result, at once and as a stream. *errors* are a refusal of the
upstream and a model that does not exist, at once and as a stream, which the client raises as its own exceptions.
The kind `echo` calls no tools and refuses nothing. Claude Code, Codex, Anthropic's and OpenAI's clients for Node and the
AI SDK have tests of their own ([chat.md](chat.md)).

`python -m pytest tests/gateway/chat/test_clients_matrix.py --write-matrix` writes this page.

| client | shape | upstream | at once | stream | tools | errors |
|---|---|---|---|---|---|---|
"""


def test_every_client_reads_all_of_it(gateway, upstream, key, request):
    upstream.script = matrix.answer
    for kind, fields in KINDS.items():
        for name in ("there", "refusing"):
            target = Target(upstream.url, name, "sk-upstream")
            gateway.declare(f"{kind} {name}", targets=(target,), **fields)
    lines = []
    for make in matrix.CLIENTS:
        client: Any = make(gateway.url, key)
        with closing(client.client):
            for kind in KINDS:
                does = "yes" if kind != "echo" else "not served"
                _check(client, kind)
                shown = f"{client.package} {version(client.package)} | `{client.shape}`"
                lines.append(f"| {shown} | `{kind}` | yes | yes | {does} | {does} |")
    page = HEAD + "\n".join(lines) + "\n"
    if request.config.getoption("write_matrix"):
        PAGE.write_text(page)
    assert PAGE.read_text() == page


def _check(client: Any, kind: str) -> None:
    for stream in (False, True):
        model, text = f"{kind} there", [matrix.TEXT]
        said = client.talk(model, stream=stream, tools=False)
        assert list(said) == text, (client.shape, kind)
        if kind == "echo":
            continue
        said = client.talk(model, stream=stream, tools=True)
        assert list(said) == [matrix.ARGUMENTS, *text], (client.shape, kind)
        for name, errors in matrix.ERRORS.items():
            with pytest.raises(errors):
                list(client.talk(f"{kind} {name}", stream=stream, tools=False))
