"""Every client in each of its shapes, at upstreams of each kind."""

from contextlib import closing
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat import clients_matrix as matrix

# What the configuration says of the upstream of each kind.
KINDS: dict[str, dict[str, Any]] = {
    "openai": {},
    "openai, speaks all": {"speaks": frozenset({"chat", "responses", "messages"})},
    "anthropic": {"upstream": "anthropic"},
    "echo": {"upstream": "echo"},
}


def test_every_client_reads_all_of_it(gateway, upstream, key):
    upstream.script = matrix.answer
    for kind, fields in KINDS.items():
        for name in ("there", "refusing", "failing"):
            target = Target(upstream.url, name, "sk-upstream")
            gateway.declare(f"{kind} {name}", targets=(target,), **fields)
    for make in matrix.CLIENTS:
        client: Any = make(gateway.url, key)
        with closing(client.client):
            for kind in KINDS:
                _check(client, kind)


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
