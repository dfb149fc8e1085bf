"""GET /v1/models for clients of Anthropic: their shape, and pages."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
import requests

from gateway.configuration.shapes import Allow
from tests.documented import assert_response_documented
from tests.gateway.chat.harness import IDENTITY, NOT_FOUND
from tests.running import PATIENCE_S

NAMES = [f"claude-{number}" for number in range(5)]


def ask(gateway: Any, path: str, **headers: str) -> Any:
    headers = {**IDENTITY, "anthropic-version": "2023-06-01", **headers}
    url = f"{gateway.url}{path}"
    response = requests.get(url, headers=headers, timeout=PATIENCE_S)
    assert_response_documented(response)
    return response


@pytest.fixture(autouse=True)
def models(gateway) -> None:
    gateway.known.clear()
    for name in NAMES:
        gateway.declare(name=name)
    gateway.declare(name="theirs", allow=Allow(everyone=False))


@pytest.mark.spec(
    "claude-code",
    "GET /v1/models?limit=1000 answers without a redirect",
    "data: id and display_name",
)
def test_models_are_described_as_anthropic_does(gateway):
    page = ask(gateway, "/v1/models?limit=1000").json()
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
    assert ask(gateway, "/models/claude-3").json()["id"] == "claude-3"


@pytest.mark.parametrize(
    ("query", "numbers", "has_more"),
    [
        ("", "01234", False),
        ("limit=2", "01", True),
        ("limit=2&after_id=claude-1", "23", True),
        ("limit=2&after_id=claude-2", "34", False),
        ("after_id=claude-4", "", False),
        ("limit=2&before_id=claude-3", "12", True),
        ("before_id=claude-1", "0", False),
        ("unknown=1&limit=1&limit=5", "01234", False),
    ],
)
def test_a_page_of_models(gateway, query, numbers, has_more):
    page = ask(gateway, f"/v1/models?{query}").json()
    assert "".join(model["id"][-1] for model in page["data"]) == numbers
    assert page["has_more"] == has_more
    assert page["first_id"] == (f"claude-{numbers[0]}" if numbers else None)


def test_errors_have_anthropics_shape(gateway):
    for path, status, kind, text in (
        ("/v1/models?limit=0", 400, "invalid_request_error", "limit: must be 1 to 1000."),
        ("/v1/models?limit=1001", 400, "invalid_request_error", "limit: must be 1 to 1000."),
        ("/v1/models?limit=x", 400, "invalid_request_error", "limit: must be 1 to 1000."),
        ("/v1/models?after_id=theirs", 400, "invalid_request_error", "after_id: is the id of no model."),
        ("/v1/models/theirs", 404, "not_found_error", NOT_FOUND),
        ("/v1/models/absent", 404, "not_found_error", NOT_FOUND),
    ):  # fmt: skip
        response = ask(gateway, path)
        assert response.status_code == status
        assert response.json() == {
            "type": "error",
            "error": {"type": kind, "message": text},
        }
    refused = ask(gateway, "/v1/models", **{"X-Forwarded-For": "10.0.0.1"})
    assert refused.status_code == 401
    assert refused.json()["error"]["type"] == "authentication_error"


def test_anthropics_client_reads_all_pages(gateway, key):
    with anthropic.Anthropic(base_url=gateway.url, api_key=key) as client:
        assert [model.id for model in client.models.list(limit=2)] == NAMES
        assert client.models.retrieve("claude-2").display_name == "claude-2"


def test_other_clients_get_openais_shape(gateway):
    response = requests.get(f"{gateway.url}/v1/models?limit=x", headers=IDENTITY, timeout=PATIENCE_S)  # fmt: skip
    assert response.json()["object"] == "list"
