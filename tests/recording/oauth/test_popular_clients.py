"""The registrations of clients that people use. Each names the public source of its body."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from recording.oauth import redirects
from recording.oauth.models import Application
from tests.recording.oauth.flows import App, query_of, refusal, register

CLAUDE = "https://claude.ai/api/mcp/auth_callback"
CHATGPT = "https://chatgpt.com/connector_platform_oauth_redirect"
CURSOR = "cursor://anysphere.cursor-mcp/oauth/callback"
CURSOR_WEB = "https://www.cursor.com/agents/mcp/oauth/callback"
GRANTS = ["authorization_code", "refresh_token"]

REGISTRATIONS: dict[str, dict[str, Any]] = {
    # https://github.com/anthropics/claude-ai-mcp/issues/1043 (the method) and
    # https://github.com/anthropics/claude-code/issues/58054 (the addresses)
    "claude": {
        "client_name": "Claude",
        "redirect_uris": [CLAUDE],
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_post",
        "scope": "mcp:connect",
    },
    # https://github.com/kunickiaj/codemem/pull/1286 and
    # https://github.com/danielealbano/android-remote-control-mcp/pull/166 (the address)
    "chatgpt": {
        "client_name": "ChatGPT",
        "redirect_uris": [CHATGPT],
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    },
    # https://github.com/microsoft/vscode, fetchDynamicRegistration in src/vs/base/common/oauth.ts;
    # https://github.com/modelcontextprotocol/python-sdk/issues/1379 (the grants of 1.104)
    "vscode": {
        "client_name": "Visual Studio Code",
        "client_uri": "https://code.visualstudio.com",
        "grant_types": [*GRANTS, "urn:ietf:params:oauth:grant-type:device_code"],
        "response_types": ["code"],
        "redirect_uris": [
            *("https://insiders.vscode.dev/redirect", "https://vscode.dev/redirect"),
            *("http://127.0.0.1/", "http://127.0.0.1:33418/"),
        ],
        "scope": "mcp:connect",
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    },
    # https://github.com/erp-mafia/accounted/pull/2225 (the addresses) and
    # https://github.com/better-auth/better-auth/pull/10956 (the method)
    "cursor": {
        "client_name": "Cursor",
        "redirect_uris": [CURSOR, CURSOR_WEB, "http://localhost:8787/callback"],
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    },
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_a_preset_registers_its_client_and_each_address_works(visitor, settings, name):
    body = REGISTRATIONS[name]
    settings.OAUTH_ALLOWED_REDIRECTS = [name]
    response = register(body)
    assert response.status_code == 201
    client = response.json()
    assert client["redirect_uris"] == body["redirect_uris"]
    method = body["token_endpoint_auth_method"]
    assert client["token_endpoint_auth_method"] == method
    assert ("client_secret" in client) == (method != "none")
    for address in redirects.PRESETS[name]:
        app = App.registered(visitor, method, redirect=address)
        assert app.tokens()["scope"] == "mcp:connect"


def test_locally_the_editors_are_allowed(settings):
    assert settings.OAUTH_ALLOWED_REDIRECTS == ["vscode", "cursor"]


@pytest.mark.parametrize(
    "word",
    ["Claude", "http://127.0.0.1/", "https://*.app.example/", "javascript:alert(1)"],
)
def test_any_other_word_in_the_list_is_an_error_that_names_it(word):
    with pytest.raises(ValueError, match="neither an https address"):
        redirects.listed(("cursor", word))


# ── Private-use schemes (RFC 8252 section 7.1) ──────────────────────────────────────


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_with_a_secret_has_no_private_use_address(db, method):
    both = {
        "redirect_uris": [CURSOR, CURSOR_WEB],
        "token_endpoint_auth_method": method,
    }
    assert register(both).json()["redirect_uris"] == [CURSOR_WEB]
    response = register(both | {"redirect_uris": [CURSOR]})
    assert refusal(response) == "invalid_redirect_uri"
    assert "token_endpoint_auth_method none" in response.json()["error_description"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (CURSOR, "cursor://anysphere.cursor-mcp"),
        ("com.example.app:/callback?x=1", "com.example.app:"),
    ],
)
def test_the_consent_page_leads_back_to_a_native_program(
    visitor, settings, address, shown
):
    settings.OAUTH_ALLOWED_REDIRECTS = [address]
    app = App.registered(visitor, redirect=address)
    page = visitor.get(app.address())
    text = page.content.decode()
    assert f"<code>{shown}</code>" in text
    assert "A program on this computer." in text
    assert "form-action" not in page["Content-Security-Policy"]
    response = visitor.post(app.address(), {"deny": "yes"})
    assert response["Location"].startswith(address)
    answer = query_of(response["Location"].replace("x=1&", ""))
    assert answer["error"] == "access_denied"


@pytest.mark.parametrize("address", [CURSOR, "com.example.app:/callback"])
def test_the_admin_and_commands_follow_the_same_policy(db, settings, address):
    settings.OAUTH_ALLOWED_REDIRECTS = [address]
    fields = {
        "redirect_uris": address,
        "authorization_grant_type": "authorization-code",
    }
    Application(client_type="public", **fields).full_clean()
    with pytest.raises(ValidationError, match="token_endpoint_auth_method none"):
        Application(client_type="confidential", **fields).full_clean()
