import pytest
import requests

from config import asgi
from tests.config.serving.servers import bridge_to, bridged, served, with_lifespan
from tests.running import PATIENCE_S

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
