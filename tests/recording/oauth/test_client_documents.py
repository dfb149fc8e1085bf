"""Client ID Metadata Documents: what is fetched, when, and what is believed of it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
import trustme
from django.db import connection as database
from django.test import Client
from django.utils import timezone
from oauth2_provider import cimd

from config.environment import redirect_addresses
from recording.oauth import client_documents, prune
from recording.oauth.models import Application
from tests.recording.factories import ApplicationFactory
from tests.recording.oauth.documents import HOST, Site, server_side
from tests.recording.oauth.flows import App

LOOPBACK = "http://127.0.0.1/callback"
REFUSED = "The document that describes the application cannot be fetched"
METADATA = "/.well-known/oauth-authorization-server"


@pytest.fixture
def site(monkeypatch, tmp_path: Path) -> Iterator[Site]:
    """A site with a certificate that is trusted, and whose name leads to loopback."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setattr(cimd, "_resolve_and_validate", lambda *_: ["127.0.0.1"])
    with socket.create_server(("127.0.0.1", 0)) as server:
        site = Site(server, server_side(authority.issue_cert(HOST)))
        thread = threading.Thread(target=site.serve, daemon=True)
        thread.start()
        site.publish()
        yield site
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture
def described(visitor, site) -> App:
    return App(visitor, site.client_id)


def assert_refused(response: Any) -> None:
    assert response.status_code == 400
    assert REFUSED in response.content.decode()
    assert "Location" not in response


# ── A connection ────────────────────────────────────────────────────────────────────


def test_the_metadata_offers_documents(client):
    document = client.get(METADATA).json()
    assert document["client_id_metadata_document_supported"] is True
    assert "none" in document["token_endpoint_auth_methods_supported"]


def test_a_client_connects_without_registration(described, site):
    tokens = described.tokens()
    assert described.refresh(tokens["refresh_token"]).status_code == 200
    assert site.connections == 1
    row = Application.objects.get()
    assert (row.client_id, row.name) == (site.client_id, "Notebook")
    assert row.registration_source == Application.RegistrationSource.CIMD
    assert not row.is_confidential


def test_the_consent_page_shows_the_host_as_verified(described, site):
    site.publish(redirect_uris=[LOOPBACK, "https://vscode.dev/redirect"])
    host = site.client_id.split("/")[2]
    verified = f"<strong>Verified:</strong> <code>{host}</code>"
    native = described.visitor.get(described.address()).content.decode()
    assert verified in native
    assert "any program on this computer can present itself as this one" in native
    assert "Nobody has checked" not in native
    web = described.address(redirect_uri="https://vscode.dev/redirect")
    page = described.visitor.get(web).content.decode()
    assert verified in page
    assert "any program on this computer" not in page
    login = Client().get(web, follow=True).content.decode()
    assert verified in login
    described.tokens()
    assert (
        f"<code>{host}</code> (verified)"
        in described.visitor.get("/accounts/clients").content.decode()
    )


def test_a_registered_client_is_not_shown_as_verified(app):
    assert "Verified" not in app.visitor.get(app.address()).content.decode()


@pytest.mark.django_db
def test_a_stranger_makes_the_server_fetch_nothing(site):
    app = App(Client(), site.client_id)
    response = app.visitor.get(app.address())
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login?next=/oauth/authorize")
    assert "Log in" in app.visitor.get(response["Location"]).content.decode()
    assert app.exchange("x").json()["error"] == "invalid_client"
    assert site.connections == 0
    assert not Application.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_transaction_is_open_during_the_fetch(described, monkeypatch):
    seen = []
    fetch = client_documents.DocumentFetcher.fetch

    def watched(self: Any, client_id: str) -> Any:
        seen.append(database.in_atomic_block)
        return fetch(self, client_id)

    monkeypatch.setattr(client_documents.DocumentFetcher, "fetch", watched)
    assert described.decide()["code"]
    assert seen == [False]


# ── Documents that clients publish; each names the public source ─────────────────────

PUBLISHED: list[tuple[dict[str, Any], list[str]]] = [
    # https://github.com/anthropics/claude-ai-mcp/issues/96
    (
        {
            "client_id": "https://claude.ai/oauth/mcp-oauth-client-metadata",
            "client_name": "Claude",
            "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
            "token_endpoint_auth_method": "none",
        },
        ["https://claude.ai/api/mcp/auth_callback"],
    ),
    # https://github.com/anthropics/claude-code/issues/41011
    (
        {
            "client_id": "https://claude.ai/oauth/claude-code-client-metadata",
            "redirect_uris": ["http://localhost/callback", LOOPBACK],
        },
        ["http://localhost/callback", LOOPBACK],
    ),
    # https://github.com/gamedevpl/www.gamedev.pl/pull/641
    (
        {
            "client_id": "https://chatgpt.com/oauth/client.json",
            "client_name": "ChatGPT",
            "redirect_uris": ["https://chatgpt.com/connector_platform_oauth_redirect"],
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        },
        ["https://chatgpt.com/connector_platform_oauth_redirect"],
    ),
    # https://github.com/anomalyco/opencode/pull/47737
    (
        {
            "client_id": "https://opencode.ai/oauth/opencode/client.json",
            "client_name": "opencode",
            "client_uri": "https://opencode.ai",
            "application_type": "native",
            "redirect_uris": [LOOPBACK, "http://localhost/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "token_endpoint_auth_methods_supported": ["none"],
        },
        [LOOPBACK, "http://localhost/callback"],
    ),
]


@pytest.mark.parametrize(("document", "addresses"), PUBLISHED)
def test_published_documents_are_supported(settings, document, addresses):
    settings.OAUTH_ALLOWED_REDIRECTS = redirect_addresses("claude,chatgpt")
    stored = client_documents.supported(document)
    assert stored["redirect_uris"] == addresses
    assert stored["token_endpoint_auth_method"] == "none"
    assert client_documents.is_address(document["client_id"])


def test_what_other_servers_support_is_left_out(described, site):
    site.publish(
        redirect_uris=["https://elsewhere.example/cb", LOOPBACK],
        grant_types=[
            "authorization_code",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ],
        scope="openid offline_access",
        logo_uri="https://elsewhere.example/logo.png",
    )
    assert described.tokens()["scope"] == "mcp:connect"
    assert Application.objects.get().redirect_uris == LOOPBACK


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
        server.settimeout(0.2)
        port = server.getsockname()[1]
        app = App(visitor, f"https://{host}:{port}/client.json")
        assert_refused(visitor.get(app.address()))
        with pytest.raises(TimeoutError):
            server.accept()


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
    ],
)
def test_a_name_that_leads_inside_is_never_asked(visitor, monkeypatch, resolved):
    rows = [(0, 0, 0, "", (address, 443)) for address in resolved]
    resolve_documents(monkeypatch, lambda: rows)
    monkeypatch.setattr(cimd.urllib3, "HTTPSConnectionPool", None)
    path = "-".join(resolved).replace(
        ":", "_"
    )  # each has its own pause after a failure
    app = App(visitor, f"https://inside.example/{path}")
    assert_refused(visitor.get(app.address()))


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
def hasty(monkeypatch, settings) -> None:
    monkeypatch.setattr(client_documents, "FETCH_FOR_S", 0.5)
    settings.OAUTH2_PROVIDER |= {"CIMD_FETCH_TIMEOUT_SECONDS": 0.5}


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("start", SLOW.values(), ids=SLOW)
def test_a_byte_now_and_then_holds_neither_the_request_nor_a_thread(
    described, site, start
):
    site.drip(start)
    assert_refused(described.visitor.get(described.address()))
    assert site.closed_by_client.wait(20)


@pytest.mark.usefixtures("hasty")
def test_a_site_that_says_nothing_holds_no_request(described, site):
    site.hang()
    assert_refused(described.visitor.get(described.address()))
    assert site.closed_by_client.wait(20)


@pytest.mark.usefixtures("hasty")
def test_a_resolver_that_hangs_holds_no_request(visitor, monkeypatch):
    resolved = threading.Event()

    resolve_documents(monkeypatch, lambda: resolved.wait(60) and [])
    try:
        assert_refused(visitor.get(App(visitor, f"https://slow.{HOST}/c").address()))
    finally:
        resolved.set()


# ── Documents that change ───────────────────────────────────────────────────────────


def test_a_document_is_fetched_again_when_it_has_expired(described, site):
    assert described.decide()["code"]
    site.publish(redirect_uris=["http://127.0.0.1/moved"], client_name="Renamed")
    with time_machine.travel(timezone.now() + timedelta(minutes=59), tick=False):
        assert described.visitor.get(described.address()).status_code == 200
    with time_machine.travel(timezone.now() + timedelta(minutes=61), tick=False):
        assert described.visitor.get(described.address()).status_code == 400
        described.redirect = "http://127.0.0.1/moved"
        page = described.visitor.get(described.address()).content.decode()
        assert "Renamed" in page
    assert site.connections == 2


def test_the_last_document_lasts_for_another_day(described, site, settings):
    # Redis does not travel in time.
    settings.OAUTH2_PROVIDER |= {"CIMD_FAILURE_BACKOFF_SECONDS": 0}
    tokens = described.tokens()
    site.answer(b"gone", status="410 Gone")
    with time_machine.travel(timezone.now() + timedelta(hours=24), tick=False):
        assert described.visitor.get(described.address()).status_code == 200
    with time_machine.travel(timezone.now() + timedelta(hours=26), tick=False):
        assert_refused(described.visitor.get(described.address()))
        assert described.refresh(tokens["refresh_token"]).status_code == 200
        site.publish()
    with time_machine.travel(timezone.now() + timedelta(hours=27), tick=False):
        assert described.visitor.get(described.address()).status_code == 200


def test_a_cache_header_shortens_the_hour_but_not_below_five_minutes(described, site):
    body = json.dumps(site.document()).encode()
    site.answer(body, "Cache-Control: no-store")
    for minutes, connections in ((0, 1), (4, 1), (6, 2)):
        moment = timezone.now() + timedelta(minutes=minutes)
        with time_machine.travel(moment, tick=False):
            assert described.visitor.get(described.address()).status_code == 200
        assert site.connections == connections


def test_a_document_never_replaces_a_client_of_the_operator(described, site):
    ApplicationFactory.create(client_id=site.client_id, redirect_uris=LOOPBACK)
    page = described.visitor.get(described.address())
    assert page.status_code == 200
    assert "Verified" not in page.content.decode()
    assert site.connections == 0


# ── What the operator allows ────────────────────────────────────────────────────────


@pytest.mark.parametrize("hosts", [[], ["other.example"], [f"x{HOST}"]])
def test_a_host_that_is_not_allowed_is_refused_at_once(
    described, site, settings, hosts
):
    assert described.visitor.get(described.address()).status_code == 200
    settings.OAUTH_CIMD_HOSTS = hosts
    for visitor in (described.visitor, Client()):
        assert_refused(visitor.get(described.address()))
        unknown = App(visitor, f"{site.client_id}?v=2")
        assert_refused(visitor.get(unknown.address()))
    assert site.connections == 1
    document = Client().get(METADATA).json()
    assert document["client_id_metadata_document_supported"] is bool(hosts)


@pytest.mark.parametrize("hosts", [["*"], [HOST], [".example"]])
def test_hosts_are_written_like_allowed_hosts(described, settings, hosts):
    settings.OAUTH_CIMD_HOSTS = hosts
    assert described.visitor.get(described.address()).status_code == 200


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_described_client_has_no_secret(described, method):
    code = described.code()
    described.method, described.secret = method, "secret"
    response = described.exchange(code)
    assert (response.status_code, response.json()["error"]) == (401, "invalid_client")
    described.method = "none"
    assert described.exchange(code).status_code == 200


def test_an_unused_client_is_pruned_when_its_document_has_expired(described, site):
    assert described.visitor.get(described.address()).status_code == 200
    with time_machine.travel(timezone.now() + timedelta(minutes=119), tick=False):
        assert prune.prune()["applications"] == 0
    with time_machine.travel(timezone.now() + timedelta(minutes=121), tick=False):
        assert prune.prune()["applications"] == 1


def test_a_connected_client_is_not_pruned(described):
    described.tokens()
    with time_machine.travel(timezone.now() + timedelta(days=89), tick=False):
        assert prune.prune()["applications"] == 0


def test_described_clients_do_not_count_as_registrations(described, settings):
    settings.OAUTH_CLIENTS_PER_ADDRESS = 1
    assert described.visitor.get(described.address()).status_code == 200
    body = {"redirect_uris": [LOOPBACK]}
    # An unknown address is stored like that of a described client.
    response = Client(REMOTE_ADDR="").post("/oauth/register", body, "application/json")
    assert response.status_code == 201
