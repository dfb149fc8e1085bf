"""GET /v1/models and /v1/models/{id}: what a caller may use, in OpenAI's and in Anthropic's shape."""

from typing import Any
from urllib.parse import quote

import anthropic

from gateway.configuration.shapes import Allow
from tests.documented import assert_response_documented
from tests.gateway.chat.harness import NOT_FOUND, ask_models

ODD_NAMES = [
    *("small", "gpt-4.1", "meta-llama/Llama-3.1-8B", "ollama:llama3.2:8b-q4", "a/b/c"),
    *("/leading", "trailing/", "two words", "50%25", "größe", "a?b#c", "models", ".."),
]


def described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "openai"}


def test_a_model_is_described_whatever_its_name_holds(gateway):
    for name in ODD_NAMES:
        gateway.declare(name=name)
        for safe in ("", "/:"):
            response = ask_models(gateway, "/" + quote(name, safe=safe))
            assert (response.status_code, response.json()) == (200, described(name))
    gateway.declare(name="theirs", allow=Allow(everyone=False))
    assert ask_models(gateway, "").json()["data"] == list(map(described, ODD_NAMES))


def test_absent_and_forbidden_models_are_answered_byte_for_byte_the_same(gateway):
    gateway.declare(name="secret", allow=Allow(everyone=False))

    absent, forbidden = ask_models(gateway, "/absent"), ask_models(gateway, "/secret")

    assert absent.status_code == forbidden.status_code == 404
    assert absent.content == forbidden.content
    assert absent.headers == forbidden.headers
    assert absent.json()["error"]["message"] == NOT_FOUND
    # To look is not to ask for an answer: no policy denied one.
    assert gateway.kept.denied == []


# ── For clients of Anthropic ────────────────────────────────────────────────────────


def ask(gateway: Any, path: str, **headers: str) -> Any:
    headers = {"anthropic-version": "2023-06-01", **headers}
    response = ask_models(gateway, path, **headers)
    assert_response_documented(response)
    return response


def test_models_are_described_as_anthropic_does(gateway, key):
    gateway.declare(name="claude")
    gateway.declare(name="theirs", allow=Allow(everyone=False))
    described = {
        "type": "model",
        "id": "claude",
        "display_name": "claude",
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
    }
    page = ask(gateway, "?limit=1").json()
    assert page["data"][-1] == described
    ends = {"has_more": False, "first_id": "small", "last_id": "claude"}
    assert {name: page[name] for name in ends} == ends
    assert ask(gateway, "/claude").json() == described
    with anthropic.Anthropic(base_url=gateway.url, api_key=key) as client:
        assert [model.id for model in client.models.list()] == ["small", "claude"]
        assert client.models.retrieve("claude").display_name == "claude"


def test_errors_have_anthropics_shape(gateway):
    error = {"type": "not_found_error", "message": NOT_FOUND}
    absent = ask(gateway, "/absent")
    assert absent.status_code == 404
    assert absent.json() == {"type": "error", "error": error}
    refused = ask(gateway, "", **{"X-Forwarded-For": "10.0.0.1"})
    assert refused.status_code == 401
    assert refused.json()["error"]["type"] == "authentication_error"
