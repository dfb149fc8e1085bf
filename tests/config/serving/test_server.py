import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests
import uvicorn

from config import asgi
from config.serving import server
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


def bridge_to(application, *, threads: int = 1, largest: int = 8_000_000) -> WSGIBridge:
    return WSGIBridge(application, threads, lambda _: largest)


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


def test_mcp_has_the_checks_and_headers_of_the_site(monkeypatch):
    monkeypatch.setattr(asgi, "everything_else", bridge_to(tell))

    def post(**headers):
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        address = f"{url}/mcp"
        return requests.post(address, json=body, headers=headers, timeout=PATIENCE_S)

    with served(with_lifespan(asgi.application)) as url:
        response = post()
        assert response.status_code == 401
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        # What the site's middleware refuses, Django answers.
        assert post(Host="evil.example").text.startswith("127.0.0.1")
        assert requests.get(f"{url}/mcp", timeout=PATIENCE_S).text.startswith("127")


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
