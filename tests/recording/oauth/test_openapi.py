"""The OpenAPI document of OAuth is complete."""

from __future__ import annotations

import pytest

from config import errors
from recording.oauth.metadata import RESOURCE_METADATA
from tests.documented import DOCUMENT, assert_valid

pytestmark = pytest.mark.django_db

PAGE = {302, 303, 400, 429, 500, 503}
FAILED = {500, 503}
OPERATIONS = {
    ("get", "/.well-known/oauth-authorization-server"): {200} | FAILED,
    ("get", RESOURCE_METADATA): {200} | FAILED,
    ("get", f"{RESOURCE_METADATA}/{{path}}"): {200, 404} | FAILED,
    ("post", "/oauth/register"): {201, 400, 413, 415, 429} | FAILED,
    ("get", "/oauth/authorize"): {200} | PAGE,
    ("post", "/oauth/authorize"): {403} | PAGE,
    ("post", "/oauth/token"): {200, 400, 401, 413, 415, 429} | FAILED,
    ("post", "/oauth/revoke"): {200, 400, 401, 413, 415, 429} | FAILED,
}


def test_every_operation_names_every_status():
    ours = {
        (method, path): {int(status) for status in operation["responses"]}
        for path, operations in DOCUMENT["paths"].items()
        if path.startswith(("/oauth", "/.well-known"))
        for method, operation in operations.items()
    }
    assert ours == OPERATIONS


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/.well-known/oauth-protected-resource/%0A", 404),
        ("/.well-known/openid-configuration", 404),
        ("/oauth/token/more", 404),
    ],
)
def test_an_address_beside_the_endpoints_is_an_error_of_oauth(client, path, status):
    response = client.get(path)
    assert response.status_code == status
    assert_valid(response.json(), {"$ref": "#/components/schemas/OAuthError"})


@pytest.mark.parametrize("status", [400, 500])
def test_what_django_refuses_is_an_error_of_oauth(rf, status):
    request = rf.post("/oauth/token")
    refuse = errors.bad_request if status == 400 else errors.server_error
    response = refuse(request, *([ValueError()] if status == 400 else []))
    assert response.status_code == status
    code = "invalid_request" if status == 400 else "server_error"
    assert f'"error": "{code}"'.encode() in response.content
