"""The recording API behind an OAuth access token, and its challenge."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from recording.accounts import personal_tokens
from recording.subscriptions import owner_id
from tests.recording.oauth.flows import ISSUER
from tests.webhooks_core.factories import EndpointFactory


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.spec("recording", "protected requests carry Authorization: Bearer")
@pytest.mark.spec("recording", "one account per token")
def test_an_access_token_opens_the_api_for_its_account_alone(app, account):
    headers = bearer(app.tokens()["access_token"])
    assert Client().get("/v1/webhooks", headers=headers).json() == {"items": []}
    account.is_active = False
    account.save()
    assert Client().get("/v1/webhooks", headers=headers).status_code == 401


def test_an_ended_connection_is_a_refused_token(app):
    token = app.tokens()["access_token"]
    app.revoke(token)
    response = Client().get("/v1/webhooks", headers=bearer(token))
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unauthorized"
    assert 'error="invalid_token"' in response["WWW-Authenticate"]


@pytest.mark.parametrize(
    "path",
    ["/v1/webhooks", "/v1/webhooks/ep_1/deliveries", "/v1/webhook-events/samples"],
)
@pytest.mark.django_db
def test_the_challenge_leads_to_the_metadata_of_the_very_address(path):
    response = Client().get(path, headers={"host": "localhost"})
    assert response.status_code == 401
    challenge = response["WWW-Authenticate"]
    assert challenge.startswith("Bearer realm=")
    assert 'scope="mcp:connect"' in challenge
    assert "error=" not in challenge
    (address,) = re.findall(r'resource_metadata="([^"]+)"', challenge)
    assert address.startswith(f"{ISSUER}/.well-known/oauth-protected-resource")
    document = Client().get(address.removeprefix(ISSUER)).json()
    assert document["resource"] == ISSUER + path
    assert document["authorization_servers"] == [ISSUER]


def test_a_refresh_token_opens_nothing(app):
    headers = bearer(app.tokens()["refresh_token"])
    assert Client().get("/v1/webhooks", headers=headers).status_code == 401


@pytest.mark.parametrize("kind", ["oauth", "personal"])
def test_authentication_costs_one_query(app, account, kind, django_assert_num_queries):
    token = (
        app.tokens()["access_token"]
        if kind == "oauth"
        else personal_tokens.create(user=account, days=1).text
    )
    EndpointFactory.create_batch(
        2, profile="recording", owner=owner_id(account), event_types=()
    )
    Client().get("/v1/webhooks", headers=bearer(token))  # notes the first use
    with django_assert_num_queries(2):  # who is it, and the list
        response = Client().get("/v1/webhooks", headers=bearer(token))
    assert len(response.json()["items"]) == 2
