"""A gateway on a real socket, with a mock upstream behind it."""

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import requests
import uvicorn
from uvicorn.server import ServerState

from config.serving.uvicorn_protocol import HttpProtocol
from gateway.chat import asgi
from gateway.chat.apis.base import Operation
from gateway.chat.apis.openai.chat import CHAT
from gateway.chat.apis.openai.format import OPENAI
from gateway.chat.context import ABSENT, ChatContext
from gateway.chat.http_messages import join_headers
from gateway.chat.metering.budget_rows import CounterKey, Stored
from gateway.chat.metering.budgets import Budgets
from gateway.chat.metering.definitions import Loaded
from gateway.chat.metering.limits import Limits
from gateway.chat.request import ModelRequest
from gateway.chat.service import Service
from gateway.chat.targets import Router, Targets
from gateway.chat.upstreams import http
from gateway.configuration.shapes import (
    BudgetEntry,
    ModelEntry,
    Target,
    Timeouts,
)
from gateway.identity import Caller
from tests.documented import assert_response_documented
from tests.gateway.chat.loops import Loop
from tests.gateway.chat.mock_upstream import MockUpstream
from tests.running import PATIENCE_S

IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
MESSAGES = [{"role": "user", "content": "Say hello to the harbour"}]
V1, V2 = "/v1/chat/completions", "/v2/chat/completions"
PATHS = pytest.mark.parametrize("path", [V1, V2])
STREAM_OR_NOT = pytest.mark.parametrize("stream", [False, True])
REQUEST_ID = {"X-Request-Id": "req-7"}
NOT_FOUND = "The specified endpoint could not be found."
INTERNAL = "Internal error occurred. Our team has been notified."
UPSTREAM = "Upstream service error for request_id req-7"


@dataclass
class Kept:
    """A recorder that keeps what it is told."""

    denied: list[tuple[str, str, str]] = field(default_factory=list)
    completed: list[ChatContext] = field(default_factory=list)

    @property
    def ended(self) -> list[ChatContext]:
        """The requests that were not refused before a call."""
        return [each for each in self.completed if each.endpoint is not ABSENT]

    def record(self, context: ChatContext) -> None:
        self.completed.append(context)

    def deny(self, context: ChatContext, reason: str) -> None:
        denied = context.operation.action, context.request.model, reason
        self.denied.append(denied)


class Known(dict[str, ModelEntry]):
    """A catalogue that a test writes."""

    async def endpoints(self) -> "Known":
        return self


def defined(*entries: BudgetEntry) -> Callable[..., Loaded]:
    """Return what loads the budgets that a test defines, without prices."""
    return lambda *_: Loaded(entries, {})


def facts(operation: Operation = CHAT, **body: Any) -> ChatContext:
    """Return the context of a request that has called nothing yet."""
    request = ModelRequest.parse(json.dumps({"model": "small", **body}).encode())
    caller, entry = Caller("acme", "ada"), ModelEntry("small", "openai")
    return ChatContext(caller, entry, request, "req-7", operation, OPENAI)


class Rows(Counter[CounterKey]):
    """Counters of budgets that no other process uses, and whose shares are reported."""

    def __call__(self, amounts: Mapping[CounterKey, int]) -> dict[CounterKey, Stored]:
        self.update(amounts)
        return {key: Stored(self[key], 100) for key in amounts}


@dataclass
class Gateway:
    """Chat on a socket, with endpoints that a test declares."""

    loop: Loop
    upstream: MockUpstream
    port: int = 0
    server: Any = None
    client: Any = None
    service: Any = None
    is_flat: bool = True  # responses that can go out in one write do

    def reset(self) -> None:
        """Begin with a service that has seen nothing, and with no connection."""
        self.known: Any = Known()
        self.kept: Any = Kept()
        self.limits, self.router = Limits(), Router()
        self.budgets = Budgets(asyncio.to_thread, load=defined(), add=Rows())
        self.loop.run(self._open())

    async def _open(self) -> None:
        if self.client is not None:
            await self.client.close()
        self.client = http.client()
        self.service = Service(
            targets=Targets(
                http.connect(self.client), self.router, self.budgets.reserve
            ),
            registry=self.known,
            recorder=self.kept,
            limits=self.limits,
            budgets=self.budgets,
            in_thread=asyncio.to_thread,
        )

    def declare(self, name: str = "small", **fields: Any) -> ModelEntry:
        entry = ModelEntry(
            name=name,
            upstream=fields.pop("upstream", "openai"),
            targets=fields.pop(
                "targets", (Target(self.upstream.url, "upstream-model", "sk-upstream"),)
            ),
            timeouts=replace(
                Timeouts(*[PATIENCE_S] * 4),
                **fields.pop("timeouts", {}),
            ),
            **fields,
        )
        self.known[name] = entry
        return entry

    def change(self, **parts: Any) -> None:
        """Replace parts of the service, which is frozen: `change(policy=…)`."""
        for name, value in parts.items():
            object.__setattr__(self.service, name, value)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(
        self,
        body: Any = None,
        *,
        path: str = V2,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> requests.Response:
        if body is None:
            body = json.dumps({"model": "small", "messages": MESSAGES, **fields})
        response = requests.post(
            self.url + path,
            data=body,
            headers={"Content-Type": "application/json", **IDENTITY, **(headers or {})},
            timeout=PATIENCE_S,
        )
        if response.status_code != 200:  # else it is the upstream's, right or wrong
            assert_response_documented(response)
        return response

    @contextmanager
    def opened(self, path: str = V2, **fields: Any) -> Iterator[requests.Response]:
        """Yield the response to a request for a stream before its end."""
        with requests.post(
            self.url + path,
            json={"model": "small", "messages": MESSAGES, "stream": True, **fields},
            headers=IDENTITY,
            stream=True,
            timeout=PATIENCE_S,
        ) as response:
            yield response

    @contextmanager
    def events(self, path: str = V2, **fields: Any) -> Iterator[Iterator[Any]]:
        """Yield the events of a stream one by one, as they come."""
        with self.opened(path, **fields) as response:
            # A comment comes when a test lets the time pass.
            lines = (
                line[6:] for line in response.iter_lines(1) if line.startswith(b"data")
            )
            yield (
                "[DONE]" if data == b"[DONE]" else json.loads(data) for data in lines
            )

    @contextmanager
    def connected(self, request: bytes) -> Iterator[socket.socket]:
        """Yield a connection over which bytes have been sent."""
        address = "127.0.0.1", self.port
        with socket.create_connection(address, timeout=PATIENCE_S) as client:
            client.sendall(request)
            yield client

    def stream(self, **fields: Any) -> list[Any]:
        """Return the events of a stream, `[DONE]` as text."""
        response = self.post(stream=True, **fields)
        assert response.status_code == 200, response.text
        assert response.headers["Content-Type"] == "text/event-stream"
        return events_of(response.content)

    def pass_time(self) -> None:
        """Let every deadline of these tests pass that has been set so far."""
        self.loop.skip(2 * PATIENCE_S)

    def settled(self, condition: Callable[[], Any]) -> bool:
        """Wait until something holds; return whether it ever did."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def recorded(self) -> ChatContext:
        """Return what was recorded of the only request."""
        assert self.settled(lambda: self.kept.ended)
        context: ChatContext
        (context,) = self.kept.ended
        assert self.settled(lambda: self.limits.running == 0)
        return context

    def is_idle(self) -> bool:
        """Wait until no request runs: no task, no bytes, no connection but one that is kept."""
        return bool(
            self.settled(lambda: self.limits.running == 0)
            and self.settled(lambda: self.loop.tasks() == 0)
            and self.settled(lambda: self.upstream.open <= 1)
        )


def events_of(body: bytes) -> list[Any]:
    *events, rest = body.decode().split("\n\n")
    assert not rest
    assert all(item.startswith("data: ") and "\n" not in item for item in events)
    return [
        item[6:] if item[6:] == "[DONE]" else json.loads(item[6:]) for item in events
    ]


def named_events_of(body: bytes) -> list[Any]:
    """Return the events of a stream; check that each is named as its type."""
    *blocks, rest = body.decode().split("\n\n")
    assert not rest
    events = []
    for block in blocks:
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def text_of(events: list[Any]) -> str:
    """Return the text of all choices, as it came."""
    choices = [one for item in events if "choices" in item for one in item["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def status_and_detail(response: requests.Response) -> tuple[int, Any]:
    """Return what a failure says on /v2; check its form."""
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Request-Id"] == "req-7"
    assert set(response.json()) == {"detail"}
    return response.status_code, response.json()["detail"]


def raw_request(**fields: Any) -> bytes:
    body = json.dumps({"model": "small", "messages": MESSAGES, **fields}).encode()
    lines = [f"POST {V2} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in IDENTITY.items()]
    lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@contextmanager
def running(gateway: Gateway) -> Iterator[Gateway]:
    """Serve chat past Django, as the site's server does."""

    async def short_cut(scope: Any, receive: Any, send: Any) -> None:
        headers = join_headers(scope["headers"])
        if not gateway.is_flat:
            scope["extensions"] = {}
        await asgi.respond(gateway.service, scope, headers, receive, send)

    gateway.reset()
    gateway.server = Server(short_cut)
    gateway.port = gateway.loop.run(gateway.server.start())
    try:
        yield gateway
    finally:
        gateway.loop.run(gateway.server.stop())
        gateway.loop.run(gateway.client.close())


class Server:
    """uvicorn's connections on a free port, without the pauses in which its server looks around."""

    def __init__(self, application: Any) -> None:
        self._config = uvicorn.Config(
            application, lifespan="off", log_config=None, proxy_headers=False
        )
        self._state = ServerState()

    async def start(self) -> int:
        """Listen; return the port."""
        self._config.load()
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpProtocol(self._config, self._state, {}), "127.0.0.1", 0
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Cut off every connection, and wait until the application has noticed."""
        self._server.close()
        for connection in list(self._state.connections):
            connection.transport.abort()
        while self._state.connections or self._state.tasks:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def ask_models(
    gateway: Any, path: str, method: str = "GET", **headers: str
) -> requests.Response:
    headers = {**REQUEST_ID, **IDENTITY, **headers}
    url = f"{gateway.url}/v1/models{path}"
    prepared = requests.Request(method, url, headers=headers).prepare()
    prepared.url = url  # as it is: a client would tidy it
    with requests.Session() as session:
        response = session.send(prepared, timeout=PATIENCE_S)
    response.headers.pop("date", None)
    return response
