"""A gateway on a real socket, with a mock upstream behind it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
import requests
import uvicorn
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from config.serving.uvicorn_protocol import HttpProtocol
from gateway.chat import asgi, runtime
from gateway.chat.context import ChatContext
from gateway.chat.fallback import FallbackCaller
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.chat.metering.limits import Limits
from gateway.chat.routing import Router
from gateway.chat.service import Service
from gateway.chat.upstreams import http, registry
from gateway.configuration.shapes import ModelEntry, Target, Timeouts
from tests.gateway.chat.mock_upstream import Loop, MockUpstream

IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
MESSAGES = [{"role": "user", "content": "Say hello to the harbour"}]


@dataclass
class Kept:
    """A recorder that keeps what it is told, as it was then: the writer does so too."""

    ended: list[ChatContext] = field(default_factory=list)
    denied: list[tuple[str, str]] = field(default_factory=list)

    def record(self, context: ChatContext) -> None:
        self.ended.append(replace(context))

    def deny(self, *, action: str, model: str, **_: Any) -> None:
        self.denied.append((action, model))


class Known(dict[str, ModelEntry]):
    """A catalogue that a test writes."""

    async def endpoints(self) -> Known:
        return self


@dataclass
class Gateway:
    """Chat on a socket, with endpoints that a test declares."""

    loop: Loop
    upstream: MockUpstream
    known: Any = field(default_factory=Known)
    kept: Any = field(default_factory=Kept)
    limits: Limits = field(default_factory=Limits)
    router: Router = field(default_factory=Router)
    port: int = 0
    service: Any = None
    client: Any = None
    server: Any = None

    def declare(self, name: str = "small", **fields: Any) -> ModelEntry:
        entry = ModelEntry(
            name=name,
            upstream=fields.pop("upstream", "openai"),
            targets=fields.pop(
                "targets", (Target(self.upstream.url, "upstream-model", "sk-upstream"),)
            ),
            timeouts=replace(
                Timeouts(connect_s=20, first_byte_s=20, idle_s=20, total_s=60),
                **fields.pop("timeouts", {}),
            ),
            **fields,
        )
        self.known[name] = entry
        return entry

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(
        self,
        body: Any = None,
        *,
        path: str = "/v2/chat/completions",
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> requests.Response:
        if body is None:
            body = json.dumps({"model": "small", "messages": MESSAGES, **fields})
        return requests.post(
            self.url + path,
            data=body,
            headers={"Content-Type": "application/json", **IDENTITY, **(headers or {})},
            timeout=20,
        )

    def stream(self, **fields: Any) -> list[Any]:
        """Return the events of a stream, `[DONE]` as text."""
        response = self.post(stream=True, **fields)
        assert response.status_code == 200, response.text
        assert response.headers["Content-Type"] == "text/event-stream"
        return events_of(response.content)

    def settled(self, condition: Callable[[], Any]) -> bool:
        """Wait until something holds, at most twenty seconds."""
        for _ in range(2000):
            if condition():
                return True
            threading.Event().wait(0.01)
        return False


def events_of(body: bytes) -> list[Any]:
    *events, rest = body.decode().split("\n\n")
    assert not rest
    assert all(item.startswith("data: ") and "\n" not in item for item in events)
    return [
        item[6:] if item[6:] == "[DONE]" else json.loads(item[6:]) for item in events
    ]


# How requests reach the service: past Django, or through one of its handlers.
SHORT_CUT, ASGI, WSGI = WAYS = ("short cut", "Django, ASGI", "Django, WSGI")
every_way = pytest.mark.parametrize("way", WAYS, indirect=True)


@contextmanager
def running(gateway: Gateway, way: str = SHORT_CUT) -> Iterator[Gateway]:
    """Serve chat in one of the ways."""
    if way == SHORT_CUT:
        service_loop: asyncio.AbstractEventLoop = gateway.loop.loop
    else:
        service_loop = LOOP_THREAD.loop
        runtime._running[service_loop] = gateway  # type: ignore[assignment] # has a service
    run_in(service_loop, _open(gateway))
    try:
        with _wsgi_server(gateway) if way == WSGI else _asgi_server(gateway, way):
            yield gateway
    finally:
        run_in(service_loop, gateway.client.close())
        runtime._running.pop(service_loop, None)


def run_in(loop: asyncio.AbstractEventLoop, coroutine: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)


async def _open(gateway: Gateway) -> None:
    gateway.client = http.session()
    gateway.service = Service(
        calls=FallbackCaller(registry.connect(gateway.client), gateway.router),
        registry=gateway.known,
        recorder=gateway.kept,
        limits=gateway.limits,
        in_thread=asyncio.to_thread,
    )


@contextmanager
def _asgi_server(gateway: Gateway, way: str) -> Iterator[None]:
    async def short_cut(scope: Any, receive: Any, send: Any) -> None:
        await asgi.respond(gateway.service, scope, receive, send)

    gateway.server = uvicorn.Server(
        uvicorn.Config(
            short_cut if way == SHORT_CUT else get_asgi_application(),
            port=0,
            http=HttpProtocol,
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )
    future = asyncio.run_coroutine_threadsafe(
        gateway.server._serve(), gateway.loop.loop
    )
    assert gateway.settled(lambda: gateway.server.started), future.exception()
    gateway.port = gateway.server.servers[0].sockets[0].getsockname()[1]
    try:
        yield
    finally:
        gateway.server.should_exit = True
        future.result(10)


class _ThreadingServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """The suite's own output is enough."""


@contextmanager
def _wsgi_server(gateway: Gateway) -> Iterator[None]:
    server = make_server(
        *("127.0.0.1", 0, get_wsgi_application()),
        server_class=_ThreadingServer,
        handler_class=_QuietHandler,
    )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    gateway.port = server.server_port
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
