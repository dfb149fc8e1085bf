"""GET /v1/models and /v1/models/{id}: what a caller may use, in OpenAI's shape."""

from typing import Any
from urllib.parse import quote

from gateway.configuration.shapes import Allow
from tests.gateway.chat.harness import NOT_FOUND, ask_models

NAMES = [
    *("small", "gpt-4.1", "meta-llama/Llama-3.1-8B", "ollama:llama3.2:8b-q4", "a/b/c"),
    *("/leading", "trailing/", "two words", "50%25", "größe", "a?b#c", "models", ".."),
]


def described(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "openai"}


def test_a_model_is_described_whatever_its_name_holds(gateway):
    for name in NAMES:
        gateway.declare(name=name)
        for safe in ("", "/:"):
            response = ask_models(gateway, "/" + quote(name, safe=safe))
            assert (response.status_code, response.json()) == (200, described(name))
    gateway.declare(name="theirs", allow=Allow(everyone=False))
    assert ask_models(gateway, "").json()["data"] == list(map(described, NAMES))


def test_absent_and_forbidden_models_are_answered_byte_for_byte_the_same(gateway):
    gateway.declare(name="secret", allow=Allow(everyone=False))

    absent, forbidden = ask_models(gateway, "/absent"), ask_models(gateway, "/secret")

    assert absent.status_code == forbidden.status_code == 404
    assert absent.content == forbidden.content
    assert absent.headers == forbidden.headers
    assert absent.json()["error"]["message"] == NOT_FOUND
    # To look is not to ask for an answer: no policy denied one.
    assert gateway.kept.denied == []
