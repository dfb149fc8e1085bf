"""A gateway on a real socket, and an upstream on another that does whatever a test says."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
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

IDENTITY = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
MESSAGES = [{"role": "user", "content": "Say hello to the harbour"}]


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()

    def run(self, coroutine: Any, timeout: float = 20.0) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def tasks(self) -> int:
        async def count() -> int:
            return len(asyncio.all_tasks()) - 1

        return int(self.run(count()))

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@dataclass
class Received:
    """One request that reached the upstream."""

    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Script = Callable[[Received], Awaitable[None]]


@dataclass
class MockUpstream:
    """A bare HTTP/1.1 server; `script` answers, byte by byte if it likes."""

    loop: Loop
    script: Script | None = None
    requests: list[Received] = field(default_factory=list)
    hung_up: list[str] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    _server: asyncio.Server | None = None

    def start(self, ssl: Any = None) -> None:
        self._server = self.loop.run(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=ssl, limit=2**26)
        )

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        self.open += 1
        try:
            while (request := await _read(reader, writer)) is not None:
                self.requests.append(request)
                await self._answer(request, reader)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _answer(self, request: Received, reader: asyncio.StreamReader) -> None:
        """Run the script, and note when the gateway hangs up meanwhile."""
        assert self.script is not None
        script = asyncio.ensure_future(self.script(request))
        gone = asyncio.ensure_future(_gone(reader))
        done, _ = await asyncio.wait({script, gone}, return_when="FIRST_COMPLETED")
        if script not in done:
            self.hung_up.append(request.path)
            script.cancel()
            raise ConnectionResetError
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
        try:
            script.result()
        except ConnectionError:
            self.hung_up.append(request.path)
            raise

    def stop(self) -> None:
        async def close() -> None:
            assert self._server is not None
            self._server.close()

        self.loop.run(close())


async def _gone(reader: asyncio.StreamReader) -> None:
    while not reader.at_eof() and not reader._buffer:  # type: ignore[attr-defined]  # noqa: ASYNC110 - a look, not a wait
        await asyncio.sleep(0.005)


async def _read(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.split(": ", 1) for line in lines if line)
    headers = {name.lower(): value for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(first.split()[1], headers, body, writer)


def head(status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def answers(value: Any, status: int = 200, **headers: str) -> Script:
    """A JSON answer; bytes go as they are."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()

    async def script(request: Received) -> None:
        request.writer.write(
            head(status, Content_Length=str(len(body)), **headers) + body
        )
        await request.writer.drain()

    return script


def sends(*parts: bytes | float | None, closes: bool = False) -> Script:
    """A chunked stream: bytes are written, a number waits, None cuts the connection off."""

    async def script(request: Received) -> None:
        writer = request.writer
        writer.write(
            head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
        )
        for part in parts:
            if part is None:
                writer.transport.abort()
                return
            if isinstance(part, float):
                await asyncio.sleep(part)
                continue
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.002)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        if closes:
            writer.close()

    return script


def event(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"data: " + data + b"\n\n"


DONE = event(b"[DONE]")
HEAD = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "upstream-model",
    "system_fingerprint": None,
}


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> Any:
    delta = {} if text is None else {"content": text}
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "choices": [choice], **more}


USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
USAGE_CHUNK = {**HEAD, "choices": [], "usage": USAGE}
STREAM = (event(chunk("Hel")), event(chunk("lo")), event(chunk(finish="stop")))
WHOLE_STREAM = (*STREAM, event(USAGE_CHUNK), DONE)


def calling(part: Any) -> bytes:
    return event(
        {**chunk(), "choices": [{"index": 0, "delta": {"tool_calls": [part]}}]}
    )


# A call of a tool whose arguments come in a part of their own.
TOOL_STREAM = (
    calling(
        {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": "tide", "arguments": ""},
        }
    ),
    calling({"index": 0, "function": {"arguments": '{"at": "Brest"}'}}),
    event(chunk(finish="tool_calls")),
    DONE,
)
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "upstream-model",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": USAGE,
}


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
