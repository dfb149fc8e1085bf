"""The gateway and the upstream of harness.py as fixtures."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from types import ModuleType
from typing import Any

import openai
import pytest

from gateway import keys
from gateway.chat import loop_thread, model_registry, runtime, service, streams
from gateway.chat.metering import background_writer, budgets
from gateway.chat.upstreams import http
from gateway.configuration.shapes import Target
from gateway.identity import Caller, Rights
from tests.gateway.chat.harness import Gateway, running
from tests.gateway.chat.loops import Loop
from tests.gateway.chat.mock_upstream import MockUpstream, answers
from tests.running import PATIENCE_S
from webhooks_core.models import bearer

# What limits the time of a request or of its end, by module.
TIME_LIMITS: dict[ModuleType, tuple[str, ...]] = {
    budgets: ("WAIT_S",),
    http: ("ERROR_BODY_S",),
    loop_thread: ("CLOSING_S",),
    model_registry: ("WAIT_S",),
    runtime: ("CLOSING_S",),
    service: ("LOOK_UP_S",),
    streams: ("USAGE_WAIT_S", "CLOSING_S"),
    background_writer: ("CLOSING_S",),
}


# The servers live as long as a module; what tests declare and count begins anew with each test.


@pytest.fixture(scope="module")
def loops() -> Iterator[tuple[Loop, Loop]]:
    """The gateway's and the upstream's loop; whatever they hold is closed at the end."""
    with closing(Loop()) as one, closing(Loop()) as other:
        yield one, other


@pytest.fixture(scope="module")
def upstream_server(loops) -> Iterator[MockUpstream]:
    server = MockUpstream(loops[1])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def upstream(upstream_server: MockUpstream) -> MockUpstream:
    upstream_server.reset(answers({}))
    return upstream_server


@pytest.fixture(scope="module")
def served(loops, upstream_server) -> Iterator[Gateway]:
    with running(Gateway(loops[0], upstream_server)) as gateway:
        yield gateway


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> None:
    """Let nothing fail only because the machine is slow."""
    for module, names in TIME_LIMITS.items():
        for name in names:
            monkeypatch.setattr(module, name, PATIENCE_S)


@pytest.fixture
def gateway(served, upstream) -> Iterator[Gateway]:
    served.reset()
    served.declare()
    yield served
    assert served.is_idle()


@pytest.fixture
def key_of(monkeypatch) -> Callable[..., str]:
    """Make gateway keys that this process has looked up a moment ago."""
    monkeypatch.setattr(keys, "CACHE_S", PATIENCE_S)

    def make(principal: str, *rights: Rights) -> str:
        text, caller = bearer.make(keys.PREFIX), Caller("acme", principal, 7, *rights)
        cache, until = keys._cache, time.time() + keys.CACHE_S - 1
        cache.put(bearer.digest(text), caller, until=until, epoch=cache.epoch)
        return text

    return make


@pytest.fixture
def key(key_of) -> str:
    return str(key_of("ada"))


@pytest.fixture
def client(gateway, key) -> Iterator[openai.OpenAI]:
    url = f"{gateway.url}/v1"
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0) as openai_client:
        yield openai_client


@pytest.fixture
def claude(gateway, upstream):
    """Send a request for a model behind an upstream of Anthropic's kind."""
    target = Target(upstream.url, "claude-there", "sk-ant-secret")
    gateway.declare(name="claude", upstream="anthropic", targets=(target,))

    def post(body: Any = None, **fields: Any) -> Any:
        return gateway.post(body, **{"model": "claude", **fields})

    return post
