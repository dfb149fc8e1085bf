"""Client ID Metadata Documents of attackers: refused, and fetched from nowhere inside."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest
import trustme

from recording.oauth import client_documents
from recording.oauth.models import Application
from tests.recording.oauth.documents import HOST, assert_refused, server_side
from tests.recording.oauth.flows import App
from tests.running import PATIENCE_S
from webhooks_core.network.resolver import ThreadPerTask

LOOPBACK = "http://127.0.0.1/callback"

# ── Documents that are refused ──────────────────────────────────────────────────────

UNUSABLE = {
    "another client_id": {"client_id": f"https://{HOST}/other.json"},
    "no client_id": {"client_id": None},
    "a secret": {"client_secret": ""},
    "another authentication": {"token_endpoint_auth_method": "private_key_jwt"},
    "secrets only": {"token_endpoint_auth_methods_supported": "none"},
    "no redirect_uris": {"redirect_uris": []},
    "unlisted redirect_uris": {"redirect_uris": ["https://elsewhere.example/cb"]},
    "a dangerous address": {"redirect_uris": [LOOPBACK, "javascript:alert(1)"]},
    "a wildcard": {"redirect_uris": ["http://127.0.0.1:*/callback"]},
    "no code grant": {"grant_types": ["client_credentials"]},
    "grants that are a text": {"grant_types": "authorization_code"},
    "another response": {"response_types": ["token"]},
    "a name that deceives": {"client_name": "Note\u202ebook"},
    "a name that is a number": {"client_name": 7},
    "too much": {"padding": "x" * 17_000},
}


@pytest.mark.parametrize("changes", UNUSABLE.values(), ids=UNUSABLE)
def test_a_document_that_is_not_valid_is_refused(described, site, changes):
    site.publish(**changes)
    assert_refused(described.visitor.get(described.address()))
    assert_refused(described.visitor.post(described.address(), {"allow": "yes"}))
    assert not Application.objects.exists()
    assert site.connections == 1, "a refused document is asked for again after a minute"


ANSWERS: dict[str, dict[str, Any]] = {
    "not JSON": {"body": b"<!doctype html>"},
    "a page": {"kind": "text/html"},
    "a list": {"body": b"[]"},
    "deep": {"body": b"[" * 16_000},
    "not UTF-8": {"body": b'{"client_id": "\xff"}'},
    "not found": {"status": "404 Not Found"},
    "a fault": {"status": "503 Service Unavailable"},
    "not HTTP": {"status": "\r\n"},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_that_is_no_document_is_refused(described, site, answer):
    body = answer.get("body", json.dumps(site.document()).encode())
    site.answer(**answer | {"body": body})
    assert_refused(described.visitor.get(described.address()))
    assert not Application.objects.exists()


def test_a_redirect_is_not_followed(described, site):
    elsewhere = f"Location: {site.client_id}?again"
    site.answer(b"", elsewhere, status="302 Found")
    assert_refused(described.visitor.get(described.address()))
    assert site.connections == 1


def test_a_certificate_of_another_name_is_refused(described, site, monkeypatch):
    site.tls = server_side(trustme.CA().issue_cert(HOST))
    assert_refused(described.visitor.get(described.address()))
    assert site.requests == []


# ── Addresses that are never asked (SSRF) ───────────────────────────────────────────

INTERNAL = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "localhost",
    "10.0.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104
]


@pytest.mark.parametrize("host", INTERNAL)
def test_an_internal_address_is_never_asked(visitor, host):
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        server.setblocking(False)
        port = server.getsockname()[1]
        app = App(visitor, f"https://{host}:{port}/client.json")
        assert_refused(visitor.get(app.address()))
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize("host", ["a..example", f"{'a' * 64}.example"])
def test_what_is_no_name_of_a_host_is_refused(visitor, host):
    app = App(visitor, f"https://{host}/client.json")
    assert_refused(visitor.get(app.address()))


def resolve_documents(monkeypatch: Any, resolve: Any) -> None:
    """Resolve the names of sites in this way, and others as ever (Redis is one of them)."""
    ever = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        is_site = str(host).endswith(".example")
        return resolve() if is_site else ever(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.parametrize(
    "resolved",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "10.0.0.1"],
        ["::1"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::7f00:1"],
        ["fd00::1"],
        ["fec0::1"],
        ["64:ff9b:1::a00:1"],
        ["::7f00:1"],
        ["2606:2800:220:1::1", "ff02::1"],
        ["192.0.0.192"],
    ],
)
def test_a_name_that_leads_inside_is_never_asked(visitor, monkeypatch, resolved):
    rows = [(0, 0, 0, "", (address, 443)) for address in resolved]
    resolve_documents(monkeypatch, lambda: rows)
    asked: list[str] = []
    monkeypatch.setattr(
        client_documents,
        "HTTPSConnectionPool",
        lambda host, *_, **__: asked.append(host),
    )
    # Each has its own pause after a failure.
    path = "-".join(resolved).replace(":", "_")
    app = App(visitor, f"https://inside.example/{path}")
    assert_refused(visitor.get(app.address()))
    assert asked == []


@pytest.mark.parametrize(
    "client_id",
    [
        "http://client.example/client.json",
        "HTTPS://client.example/client.json",
        "https://user@client.example/client.json",
        "https://client.example/client.json#fragment",
        "https://cl\u0456ent.example/client.json",
        "https://client.example\\@evil.example/client.json",
        "https://client.example/" + "x" * 255,
    ],
)
def test_what_is_no_address_of_a_document_is_an_unknown_client(visitor, client_id):
    page = visitor.get(App(visitor, client_id).address())
    assert page.status_code == 400
    assert "The application is not known here." in page.content.decode()


@pytest.mark.parametrize("path", ["", "/./client.json", "/a/../client.json"])
def test_an_address_without_a_clean_path_is_refused(visitor, site, path):
    root = site.client_id.removesuffix("/mcp/client.json")
    assert_refused(visitor.get(App(visitor, root + path).address()))
    assert site.connections == 0


# ── Sites that are slow ─────────────────────────────────────────────────────────────

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
SLOW = {
    "headers": HEAD + b"X-Slow: ",
    "body": HEAD + b"Content-Length: 16000\r\n\r\n{",
}


@pytest.fixture
def hasty(monkeypatch, site) -> None:
    """The deadline of a fetch is over as soon as the site was asked."""
    submit = ThreadPerTask.submit

    def submit_hastily(threads: ThreadPerTask, *task: Any) -> Any:
        future = submit(threads, *task)

        def result(timeout: float) -> Any:
            assert timeout == client_documents.FETCH_FOR_S
            assert site.asked.wait(PATIENCE_S)
            raise TimeoutError

        monkeypatch.setattr(future, "result", result)
        return future

    monkeypatch.setattr(ThreadPerTask, "submit", submit_hastily)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("start", SLOW.values(), ids=SLOW)
def test_a_byte_now_and_then_holds_neither_the_request_nor_a_thread(
    described, site, start
):
    site.drip(start)
    assert_refused(described.visitor.get(described.address()))
    assert site.closed_by_client.wait(PATIENCE_S)


@pytest.mark.usefixtures("hasty")
def test_a_site_that_says_nothing_holds_no_request(described, site):
    site.hang()
    assert_refused(described.visitor.get(described.address()))
    assert site.closed_by_client.wait(PATIENCE_S)


def test_a_resolver_that_hangs_holds_no_request(visitor, monkeypatch):
    monkeypatch.setattr(client_documents, "FETCH_FOR_S", 0.01)
    resolved = threading.Event()
    resolve_documents(monkeypatch, lambda: resolved.wait(60) and [])
    try:
        assert_refused(visitor.get(App(visitor, f"https://slow.{HOST}/c").address()))
    finally:
        resolved.set()
