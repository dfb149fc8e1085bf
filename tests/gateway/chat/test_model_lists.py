"""GET /v1/models for clients of Anthropic: their shape, in one page."""

from typing import Any

import anthropic
import pytest

from gateway.configuration.shapes import Allow
from tests.documented import assert_response_documented
from tests.gateway.chat.harness import NOT_FOUND, ask_models

NAMES = [f"claude-{number}" for number in range(5)]


def ask(gateway: Any, path: str, **headers: str) -> Any:
    headers = {"anthropic-version": "2023-06-01", **headers}
    response = ask_models(gateway, path, **headers)
    assert_response_documented(response)
    return response


@pytest.fixture(autouse=True)
def models(gateway) -> None:
    gateway.known.clear()
    for name in NAMES:
        gateway.declare(name=name)
    gateway.declare(name="theirs", allow=Allow(everyone=False))


def test_models_are_described_as_anthropic_does(gateway):
    page = ask(gateway, "?limit=1000").json()
    assert [model["id"] for model in page["data"]] == NAMES
    assert page["data"][0] == {
        "type": "model",
        "id": "claude-0",
        "display_name": "claude-0",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    }
    ends = {"has_more": False, "first_id": "claude-0", "last_id": "claude-4"}
    assert {name: page[name] for name in ends} == ends
    assert ask(gateway, "/claude-3").json()["id"] == "claude-3"


def test_errors_have_anthropics_shape(gateway):
    error = {"type": "not_found_error", "message": NOT_FOUND}
    for path in ("/theirs", "/absent"):
        response = ask(gateway, path)
        assert response.status_code == 404
        assert response.json() == {"type": "error", "error": error}
    refused = ask(gateway, "", **{"X-Forwarded-For": "10.0.0.1"})
    assert refused.status_code == 401
    assert refused.json()["error"]["type"] == "authentication_error"


def test_anthropics_client_reads_models(gateway, key):
    with anthropic.Anthropic(base_url=gateway.url, api_key=key) as client:
        assert [model.id for model in client.models.list(limit=2)] == NAMES
        assert client.models.retrieve("claude-2").display_name == "claude-2"
