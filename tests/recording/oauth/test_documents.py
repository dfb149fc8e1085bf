"""Client ID Metadata Documents: what is fetched, when, what is believed, and of attackers nothing."""

import socket
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from oauth2_provider import cimd

from recording.oauth import documents, grants
from recording.oauth.models import Application
from recording.oauth.redirects import PRESETS
from tests.clock import travel
from tests.recording.factories import ApplicationFactory
from tests.recording.oauth.documents import HOST, assert_refused
from tests.recording.oauth.flows import App, refusal

LOOPBACK = "http://127.0.0.1/callback"


@pytest.fixture(autouse=True)
def nothing_cached() -> None:
    cache.clear()


def test_a_client_connects_without_registration(described, site):
    tokens = described.tokens()
    assert described.refresh(tokens["refresh_token"]).status_code == 200
    assert site.accepted == 1
    row = Application.objects.get()
    assert (row.client_id, row.name) == (site.client_id, "Notebook")
    assert row.registration_source == Application.RegistrationSource.CIMD
    assert not row.is_confidential


def test_the_consent_page_shows_the_host_as_verified(described, site, app):
    host = site.client_id.split("/")[2]
    page = described.visitor.get(described.address()).content.decode()
    assert f"<strong>Verified:</strong> <code>{host}</code>" in page
    assert "any program on this computer can present itself as this one" in page
    assert "Verified" not in app.visitor.get(app.address()).content.decode()


def test_only_consent_stores_a_client(described, site):
    for _ in range(2):
        assert "Notebook" in described.visitor.get(described.address()).content.decode()
    assert described.decide("deny")["error"] == "access_denied"
    assert not Application.objects.exists()
    assert described.decide()["code"]
    site.publish(client_name="Renamed")
    with travel(timezone.now() + timedelta(minutes=61), tick=False):
        cache.clear()  # Redis does not travel in time
        assert "Renamed" in described.visitor.get(described.address()).content.decode()
        assert Application.objects.get().name == "Notebook"
        assert described.decide()["code"]
        assert Application.objects.get().name == "Renamed"
    assert site.accepted == 2


@pytest.mark.django_db
def test_a_stranger_makes_the_server_fetch_nothing(site):
    app = App(Client(), site.client_id)
    response = app.visitor.get(app.address())
    assert response["Location"].startswith("/accounts/login/?next=/oauth/authorize")
    assert app.exchange("x").json()["error"] == "invalid_client"
    assert site.accepted == 0


# Documents that clients publish; each names the public source.
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
    # https://github.com/anomalyco/opencode/pull/47737, and what other servers support
    (
        {
            "client_id": "https://opencode.ai/oauth/opencode/client.json",
            "client_name": "opencode",
            "application_type": "native",
            "redirect_uris": [LOOPBACK, "https://elsewhere.example/cb"],
            "grant_types": ["authorization_code", "refresh_token", "other"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": "openid offline_access",
        },
        [LOOPBACK],
    ),
]


@pytest.mark.parametrize(("document", "addresses"), PUBLISHED)
def test_published_documents_are_supported(settings, document, addresses):
    settings.OAUTH_ALLOWED_REDIRECTS = [*PRESETS["claude"], *PRESETS["chatgpt"]]
    assert documents.supported(document)["redirect_uris"] == addresses
    assert documents.is_address(document["client_id"])


def test_the_last_document_lasts_until_there_is_a_new_one(described, site):
    tokens = described.tokens()
    site.answer(b"gone", status="410 Gone")
    with travel(timezone.now() + timedelta(days=2), tick=False):
        cache.clear()
        assert described.visitor.get(described.address()).status_code == 200
        assert described.refresh(tokens["refresh_token"]).status_code == 200
        cache.clear()
        site.publish(redirect_uris=["http://127.0.0.1/moved"])
        assert described.visitor.get(described.address()).status_code == 400


def test_a_document_never_replaces_a_client_of_the_operator(described, site):
    ApplicationFactory.create(client_id=site.client_id, redirect_uris=LOOPBACK)
    assert described.visitor.get(described.address()).status_code == 200
    assert site.accepted == 0


@pytest.mark.parametrize(
    ("hosts", "allowed"),
    [
        *(([], False), (["other.example"], False), ([f"x{HOST}"], False)),
        *((["*"], True), ([HOST], True), ([".example"], True)),
    ],
)
def test_hosts_are_those_that_the_operator_allows(described, settings, hosts, allowed):
    settings.OAUTH_CIMD_HOSTS = hosts
    response = described.visitor.get(described.address())
    assert response.status_code == (200 if allowed else 400)
    document = Client().get("/.well-known/oauth-authorization-server").json()
    assert document["client_id_metadata_document_supported"] is bool(hosts)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_described_client_has_no_secret(described, method):
    code = described.code()
    described.method, described.secret = method, "secret"
    assert refusal(described.exchange(code), 401) == "invalid_client"
    described.method = "none"
    assert described.exchange(code).status_code == 200


def test_a_connected_client_is_kept_an_unused_one_is_not(described):
    described.decide()
    with travel(timezone.now() + timedelta(days=91), tick=False):
        grants.prune()
    assert not Application.objects.exists()
    described.tokens()
    with travel(timezone.now() + timedelta(days=89), tick=False):
        grants.prune()
    assert Application.objects.exists()


# ── Attackers ───────────────────────────────────────────────────────────────────────

UNUSABLE: dict[str, dict[str, Any]] = {
    "another client_id": {"client_id": f"https://{HOST}/other.json"},
    "no client_id": {"client_id": None},
    "a secret": {"client_secret": ""},
    "another authentication": {"token_endpoint_auth_method": "private_key_jwt"},
    "secrets only": {"token_endpoint_auth_methods_supported": "none"},
    "no redirect_uris": {"redirect_uris": []},
    "unlisted redirect_uris": {"redirect_uris": ["https://elsewhere.example/cb"]},
    "a dangerous address": {"redirect_uris": [LOOPBACK, "javascript:alert(1)"]},
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
    assert site.accepted == 1, "a refused document is asked for again after a minute"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "localhost", "10.0.0.1", "0.0.0.0"),  # noqa: S104
        *("169.254.169.254", "100.64.0.1", "a..example", f"{'a' * 64}.example"),
    ],
)
def test_an_internal_address_is_never_asked(visitor, host):
    with socket.create_server(("0.0.0.0", 0)) as server:  # noqa: S104
        server.setblocking(False)
        port = server.getsockname()[1]
        app = App(visitor, f"https://{host}:{port}/client.json")
        assert_refused(visitor.get(app.address()))
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    "resolved",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "10.0.0.1"],
        *(["::1"], ["::ffff:169.254.169.254"], ["64:ff9b::7f00:1"], ["fd00::1"]),
        *(["fec0::1"], ["64:ff9b:1::a00:1"], ["::7f00:1"], ["192.0.0.192"]),
        ["2606:2800:220:1::1", "ff02::1"],
    ],
)
def test_a_name_that_leads_inside_is_never_asked(visitor, monkeypatch, resolved):
    ever, rows = socket.getaddrinfo, [(0, 0, 0, "", (each, 443)) for each in resolved]

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        return rows if host == "inside.example" else ever(host, *args, **kwargs)

    def connect(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(cimd.urllib3, "HTTPSConnectionPool", connect)
    assert_refused(visitor.get(App(visitor, "https://inside.example/c").address()))


@pytest.mark.parametrize(
    "client_id",
    [
        *("http://client.example/client.json", "HTTPS://client.example/client.json"),
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


def test_slow_sites_hold_few_threads(described, site):
    with documents.FETCHES, documents.FETCHES:
        assert described.visitor.get(described.address()).status_code == 400
        assert site.accepted == 0
    assert described.visitor.get(described.address()).status_code == 200
