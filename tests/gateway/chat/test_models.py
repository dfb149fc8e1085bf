"""GET /v1/models and /v1/models/{id}: what a caller may use, in OpenAI's shape."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import openai
import pytest
import requests

from gateway.configuration.shapes import Allow
from tests.gateway.chat.harness import IDENTITY
from tests.running import PATIENCE_S

NOBODY = Allow(everyone=False)
NAMES = [
    "small",
    "gpt-4.1",
    "meta-llama/Llama-3.1-8B",
    "ollama:llama3.2:8b-q4",
    "a/b/c",
    "/leading",
    "trailing/",
    "two words",
    "50%25",
    "größe",
    "a?b#c",
    "models",
    "..",
]


def ask_models(gateway: Any, path: str, **options: Any) -> requests.Response:
    method = options.pop("method", "GET")
    headers = {"X-Request-Id": "req-7", **options.pop("headers", IDENTITY)}
    url = f"{gateway.url}/v1/models{path}"
    prepared = requests.Request(method, url, headers=headers).prepare()
    prepared.url = url  # as it is: a client would tidy it
    with requests.Session() as session:
        return session.send(prepared, timeout=PATIENCE_S)


def described(name: str, upstream: str = "openai") -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": upstream}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("safe", ["", "/:"])
def test_a_model_is_described_whatever_its_name_holds(gateway, name, safe):
    gateway.declare(name=name)
    response = ask_models(gateway, "/" + quote(name, safe=safe))
    assert (response.status_code, response.json()) == (200, described(name))
    assert described(name) in ask_models(gateway, "").json()["data"]


def test_openais_client_describes_a_model(gateway, key):
    gateway.declare(name="meta/llama:3.1")
    client = openai.OpenAI(base_url=gateway.url + "/v1", api_key=key, max_retries=0)
    with client:
        assert client.models.retrieve("meta/llama:3.1").id == "meta/llama:3.1"
        with pytest.raises(openai.NotFoundError) as caught:
            client.models.retrieve("absent")
    assert caught.value.code == "model_not_found"


def test_absent_and_forbidden_models_are_answered_byte_for_byte_the_same(gateway):
    gateway.declare(name="secret", allow=NOBODY)

    absent, forbidden = ask_models(gateway, "/absent"), ask_models(gateway, "/secret")

    assert absent.status_code == forbidden.status_code == 404
    assert absent.content == forbidden.content
    assert absent.json() == {
        "error": {
            "message": "The specified endpoint could not be found.",
            "type": "not_found_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
    for response in (absent, forbidden):
        response.headers.pop("date", None)
    assert absent.headers == forbidden.headers
    # To look is not to ask for an answer: no policy denied one.
    assert gateway.kept.denied == []


@pytest.mark.parametrize(
    ("path", "status"), [("", 200), ("/small", 200), ("/absent", 404)]
)
def test_head_has_the_headers_of_get_and_no_body(gateway, path, status):
    get, head = ask_models(gateway, path), ask_models(gateway, path, method="HEAD")
    assert (get.status_code, head.status_code) == (status, status)
    assert head.content == b""
    for response in (get, head):
        response.headers.pop("date", None)
    assert head.headers == get.headers


@pytest.mark.parametrize("path", ["", "/small", "/absent"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_models_are_read_only(gateway, path, method):
    response = ask_models(gateway, path, method=method)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD")
    assert set(response.json()) == {"error"}


@pytest.mark.parametrize("path", ["", "/small", "/absent"])
def test_models_are_for_callers_who_are_known(gateway, path):
    response = ask_models(gateway, path, headers={})
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize("path", ["/", "//", "/small/"])
def test_a_path_that_names_no_model_is_an_absent_one(gateway, path):
    response = ask_models(gateway, path)
    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"
