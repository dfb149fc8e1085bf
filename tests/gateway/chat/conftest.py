"""The gateway and the upstream of harness.py as fixtures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from gateway import keys
from gateway.configuration.shapes import Target
from gateway.identity import Caller
from tests.gateway.chat.harness import SHORT_CUT, Gateway, running
from tests.gateway.chat.mock_upstream import Loop, MockUpstream, answers
from webhooks_core.api import tokens


@pytest.fixture
def loops() -> Iterator[tuple[Loop, Loop]]:
    pair = Loop(), Loop()
    yield pair
    for loop in pair:
        loop.stop()


@pytest.fixture
def upstream(loops) -> Iterator[MockUpstream]:
    server = MockUpstream(loops[1], script=answers({}))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def way(request) -> str:
    """How requests reach the service; `parametrize("way", WAYS, indirect=True)` tries all."""
    return getattr(request, "param", SHORT_CUT)


@pytest.fixture
def gateway(loops, upstream, way) -> Iterator[Gateway]:
    with running(Gateway(loops[0], upstream), way) as served:
        served.declare()
        yield served


@pytest.fixture
def key(monkeypatch) -> str:
    """A gateway key that this process has looked up a moment ago."""
    monkeypatch.setattr(keys, "CACHE_S", 60.0)
    text = tokens.make(keys.PREFIX)
    caller = Caller("acme", "ada", 7)
    cache, until = keys._cache, time.time() + 59
    cache.put(tokens.digest(text), caller, until=until, epoch=cache.epoch)
    return text


@pytest.fixture
def claude(gateway, upstream):
    target = Target(upstream.url, "claude-there", "sk-ant-secret")
    gateway.declare(name="claude", upstream="anthropic", targets=(target,))

    def post(**fields: Any) -> Any:
        return gateway.post(model="claude", **fields)

    return post
