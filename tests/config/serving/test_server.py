from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import requests
import uvicorn

from config import asgi
from config.serving import server
from config.serving.bodies import Bodies
from config.serving.wsgi_bridge import WSGIBridge
from tests.running import PATIENCE_S, until

FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "https",
    "Forwarded": "for=203.0.113.9;proto=https",
    "X-Real-IP": "203.0.113.9",
}


def tell(environ, start_response):
    """A WSGI application that answers who it thinks is asking."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['REMOTE_ADDR']} {environ['wsgi.url_scheme']}".encode()]


@contextmanager
def served(application) -> Iterator[str]:
    listener = server.listen("127.0.0.1", 0)
    running = uvicorn.Server(server.configuration(application))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: running.started, "the start of the server")
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        running.should_exit = True
        thread.join()


def bridge_to(
    application, *, threads: int = 1, total: int = 128_000_000, largest: int = 8_000_000
) -> WSGIBridge:
    return WSGIBridge(
        application,
        threads=threads,
        bodies=Bodies(total),
        largest_body=lambda _: largest,
    )


@contextmanager
def bridged(application, **options: int) -> Iterator[str]:
    """Serve a WSGI application through the bridge."""
    bridge = bridge_to(application, **options)
    with served(with_lifespan(bridge)) as url:
        yield url
    bridge.close()


def with_lifespan(application):
    """Return an ASGI application that serves HTTP, with a lifespan that does nothing."""

    async def serve(scope, receive, send):
        if scope["type"] == "http":
            return await application(scope, receive, send)
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})

    return serve


def test_calls_of_mcp_let_the_other_requests_pass(monkeypatch):
    gate = threading.Event()

    def wait(environ, start_response):
        gate.wait(PATIENCE_S)
        return tell(environ, start_response)

    def get(path):
        return requests.get(url + path, timeout=PATIENCE_S).text

    monkeypatch.setattr(asgi, "mcp", bridge_to(wait))
    monkeypatch.setattr(asgi, "everything_else", bridge_to(tell))
    with served(with_lifespan(asgi.application)) as url, ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(get, "/mcp") for _ in range(3)]
        assert get("/v1/webhooks").startswith("127.0.0.1")
        assert not any(call.done() for call in calls)
        gate.set()
        assert [call.result()[:9] for call in calls] == ["127.0.0.1"] * 3


@pytest.mark.parametrize("trusted", ["127.0.0.1", "*", None])
def test_no_header_changes_the_peers_address(monkeypatch, trusted):
    # uvicorn reads this variable by itself when it is allowed to.
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    if trusted:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    with bridged(tell) as url:
        answer = requests.get(url, headers=FORGED, timeout=PATIENCE_S)
    assert answer.text == "127.0.0.1 http"
    assert "server" not in answer.headers
