from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from config.serving import server, sockets
from config.serving.wsgi_bridge import WSGIBridge
from tests.running import until

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
    listener = sockets.listen("127.0.0.1", 0)
    running = server.server(application)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        until(lambda: running.started, "the start of the server")
        yield "http://{}:{}".format(*listener.getsockname())
    finally:
        running.should_exit = True
        thread.join()


@contextmanager
def bridged(application, *, threads: int = 1) -> Iterator[str]:
    """Serve a WSGI application through the bridge, which knows nothing of a lifespan."""
    bridge = WSGIBridge(application, threads=threads)

    async def with_lifespan(scope, receive, send):
        if scope["type"] == "http":
            return await bridge(scope, receive, send)
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return await send({"type": "lifespan.shutdown.complete"})

    with served(with_lifespan) as url:
        yield url
    bridge.close()


@pytest.mark.parametrize("trusted", ["127.0.0.1", "*", None])
def test_no_header_changes_the_peers_address(monkeypatch, trusted):
    # uvicorn reads this variable by itself when it is allowed to.
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    if trusted:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    with bridged(tell) as url:
        answer = requests.get(url, headers=FORGED, timeout=20)
    assert answer.text == "127.0.0.1 http"
    assert "server" not in answer.headers
