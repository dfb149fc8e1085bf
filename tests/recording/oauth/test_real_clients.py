"""Client libraries of others, unchanged, against a running server."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauth2_provider.models import RefreshToken

from tests.recording.oauth.flows import METHODS, REDIRECT, App
from tests.recording.oauth.live import (
    Memory,
    Person,
    installed_node_clients,
    patient,
    provider,
)
from tests.running import PATIENCE_S
from tests.tools import output_of

pytestmark = pytest.mark.slow

# ── The MCP Python SDK ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", [*METHODS, "document"])
def test_mcp_goes_from_a_bare_401_to_a_refreshed_token(person, site, method):
    memory = Memory()
    given = ("none", site.client_id) if method == "document" else (method,)

    async def use() -> tuple[list[int], list[str]]:
        auth = provider(person, memory, *given)
        statuses, refresh_tokens = [], []
        async with patient(auth) as client:
            for _ in range(2):
                response = await client.get(f"{person.url}/v1/webhooks")
                statuses.append(response.status_code)
                refresh_tokens.append(
                    str(memory.tokens and memory.tokens.refresh_token)
                )
                auth.context.token_expiry_time = 1  # to the SDK, an hour has passed
        return statuses, refresh_tokens

    statuses, refresh_tokens = asyncio.run(use())
    assert statuses == [200, 200]
    assert refresh_tokens[0] != refresh_tokens[1]
    assert site.accepted == (method == "document")
    assert RefreshToken.objects.count() == 2
    assert RefreshToken.objects.values("token_family").distinct().count() == 1


# ── Authlib and requests-oauthlib ───────────────────────────────────────────────────


def status(person: Person, token: dict[str, Any]) -> int:
    headers = {"Authorization": f"Bearer {token['access_token']}"}
    address = f"{person.url}/v1/webhooks"
    return requests.get(address, headers=headers, timeout=PATIENCE_S).status_code


@pytest.mark.parametrize("method", METHODS)
def test_authlib_connects_refreshes_and_revokes(person, visitor, method):
    app = App.registered(visitor, method)
    client = AuthlibSession(
        app.client_id,
        app.secret or None,
        token_endpoint_auth_method=method,
        scope="mcp:connect",
        redirect_uri=REDIRECT,
        code_challenge_method="S256",
    )
    verifier = "v" * 64
    with client as session:
        address, state = session.create_authorization_url(
            f"{person.url}/oauth/authorize", code_verifier=verifier
        )
        location = person.allow(address)
        endpoint = f"{person.url}/oauth/token"
        token = session.fetch_token(
            endpoint,
            authorization_response=location,
            state=state,
            code_verifier=verifier,
        )
        assert status(person, token) == 200
        fresh = session.refresh_token(endpoint, token["refresh_token"])
        assert status(person, fresh) == 200
        response = session.revoke_token(
            f"{person.url}/oauth/revoke", fresh["refresh_token"]
        )
        assert response.status_code == 200
        assert status(person, fresh) == 401


# ── Node ────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def node_clients() -> Path:
    return installed_node_clients()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("script", ["mcp.mjs", "oauth4webapi.mjs", "openid-client.mjs"])
def test_a_node_client_connects_and_refreshes(person, node_clients, script, method):
    cookies = "; ".join(f"{each.name}={each.value}" for each in person.session.cookies)
    output = output_of(
        ["node", script, person.url, method, cookies],
        cwd=node_clients,
    )
    result = json.loads(output)
    assert result["statuses"] == [401, 200, 200]
    assert result["first"] != result["second"]
    assert result["scope"] == "mcp:connect"
