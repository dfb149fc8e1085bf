"""What scripts of other sites may read: what needs no cookie, and nothing else."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.recording.oauth.flows import FORM

ELSEWHERE = {"origin": "https://notebook.example"}
OPEN = {
    "/.well-known/oauth-authorization-server": "GET, HEAD",
    "/.well-known/oauth-protected-resource": "GET, HEAD",
    "/.well-known/oauth-protected-resource/v1/webhooks": "GET, HEAD",
    "/oauth/register": "POST",
    "/oauth/token": "POST",
    "/oauth/revoke": "POST",
    "/v1/webhooks": "GET, POST, HEAD, OPTIONS",
    "/v1/webhooks/ep_x": "PATCH, DELETE, OPTIONS",
    "/v1/webhooks/ep_x/test": "POST, OPTIONS",
    "/v1/webhooks/ep_x/deliveries": "GET, HEAD, OPTIONS",
    "/v1/webhook-events/samples": "GET, HEAD, OPTIONS",
}
CLOSED = [
    "/",
    "/oauth/authorize",
    "/accounts/login/",
    "/accounts",
    "/accounts/tokens",
    "/admin/",
    "/v1/webhooks/subscriptions",
    "/v2/chat/completions",
]


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPEN)
def test_a_preflight_allows_any_header_and_no_credentials(path):
    asks = ELSEWHERE | {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, mcp-protocol-version",
    }
    response = Client().options(path, headers=asks)
    assert (response.status_code, response.content) == (204, b"")
    assert response["Access-Control-Allow-Origin"] == "*"
    assert response["Access-Control-Allow-Methods"] == OPEN[path]
    assert response["Access-Control-Allow-Headers"] == "*, Authorization"
    assert set(OPEN[path].split(", ")) <= set(response["Allow"].split(", "))
    assert "Access-Control-Allow-Credentials" not in response


@pytest.mark.django_db
@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_every_response_is_readable_for_scripts_errors_too(path, method):
    response = Client().generic(method, path, b"{", headers=ELSEWHERE)
    assert response["Access-Control-Allow-Origin"] == "*"
    assert "WWW-Authenticate" in response["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in response


@pytest.mark.django_db
def test_a_throttled_script_reads_when_to_come_back(settings):
    settings.OAUTH_RATES = settings.OAUTH_RATES | {"token": "1/minute"}
    for _ in range(2):
        response = Client().post("/oauth/token", b"", FORM, REMOTE_ADDR="192.0.2.77")
    assert response.status_code == 429
    assert response["Access-Control-Allow-Origin"] == "*"
    assert "Retry-After" in response["Access-Control-Expose-Headers"]


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
def test_pages_and_other_products_stay_closed(visitor, path, method):
    response = visitor.generic(method, path, headers=ELSEWHERE)
    assert not [name for name in response.headers if name.startswith("Access-Control-")]


def test_a_cookie_opens_nothing_that_is_open_to_scripts(visitor):
    assert visitor.get("/v1/webhooks", headers=ELSEWHERE).status_code == 401
    assert visitor.post("/oauth/revoke", b"token=x", FORM).status_code == 400
