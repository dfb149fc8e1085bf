"""Client ID Metadata Documents: what is fetched, when, and what is believed of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection as database
from django.test import Client
from django.utils import timezone

from recording.oauth import client_documents, prune
from recording.oauth.models import Application
from recording.oauth.redirects import PRESETS
from tests.recording.factories import ApplicationFactory
from tests.recording.oauth.documents import HOST, assert_refused
from tests.recording.oauth.flows import App, refusal, register

LOOPBACK = "http://127.0.0.1/callback"
METADATA = "/.well-known/oauth-authorization-server"


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
    described.tokens()
    assert (
        f"<code>{host}</code> (verified)"
        in described.visitor.get("/accounts").content.decode()
    )


def test_a_registered_client_is_not_shown_as_verified(app):
    assert "Verified" not in app.visitor.get(app.address()).content.decode()


def test_only_consent_stores_a_client(described, site):
    for _ in range(2):
        assert "Notebook" in described.visitor.get(described.address()).content.decode()
    assert described.decide("deny")["error"] == "access_denied"
    assert not Application.objects.exists()
    assert described.decide()["code"]
    assert Application.objects.get().client_id == site.client_id
    assert site.connections == 1


def test_an_expired_document_is_stored_again_by_consent_alone(described, site):
    assert described.decide()["code"]
    site.publish(client_name="Renamed")
    with time_machine.travel(timezone.now() + timedelta(minutes=61), tick=False):
        assert "Renamed" in described.visitor.get(described.address()).content.decode()
        assert Application.objects.get().name == "Notebook"
        assert described.decide()["code"]
        assert Application.objects.get().name == "Renamed"


@pytest.mark.django_db
def test_a_stranger_makes_the_server_fetch_nothing(site):
    app = App(Client(), site.client_id)
    response = app.visitor.get(app.address())
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/?next=/oauth/authorize")
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
    settings.OAUTH_ALLOWED_REDIRECTS = [*PRESETS["claude"], *PRESETS["chatgpt"]]
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
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {
        "CIMD_FAILURE_BACKOFF_SECONDS": 0
    }
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
    assert refusal(described.exchange(code), 401) == "invalid_client"
    described.method = "none"
    assert described.exchange(code).status_code == 200


def test_an_unused_client_is_pruned_when_its_document_has_expired(described):
    assert described.decide()["code"]
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
    # An unknown address is stored like that of a described client.
    response = register({"redirect_uris": [LOOPBACK]}, REMOTE_ADDR="")
    assert response.status_code == 201
