"""What a key may call: its scope and models, and the models of the principal that created it."""

from __future__ import annotations

import time

import pytest
import requests

from gateway import keys
from gateway.configuration.shapes import Allow
from gateway.identity import Caller
from gateway.rights import Rights
from tests.gateway.chat.harness import NOT_FOUND, V1, V2
from tests.gateway.chat.mock_upstream import COMPLETION, answers
from tests.running import PATIENCE_S
from webhooks_core.web import bearer


@pytest.fixture
def headers_for(monkeypatch):
    monkeypatch.setattr(keys, "CACHE_S", 60.0)

    def key_of(principal: str, rights: Rights) -> dict[str, str]:
        text, cache = bearer.make(keys.PREFIX), keys._cache
        caller = Caller("acme", principal, 7, rights)
        until = time.time() + 59
        cache.put(bearer.digest(text), caller, until=until, epoch=cache.epoch)
        return {"Authorization": f"Bearer {text}"}

    return key_of


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (V2, {"detail": "This needs a gateway key with the scope chat."}),
        (
            V1,
            {
                "error": {
                    "message": "This needs a gateway key with the scope chat.",
                    "type": "permission_error",
                    "param": None,
                    "code": None,
                }
            },
        ),
        (
            "/v1/messages",
            {
                "type": "error",
                "error": {
                    "type": "permission_error",
                    "message": "This needs a gateway key with the scope chat.",
                },
            },
        ),
    ],
)
def test_a_key_without_the_scope_calls_no_model(
    gateway, upstream, headers_for, path, body
):
    headers = headers_for("ada", Rights(frozenset({"ingest"})))
    response = gateway.post(path=path, headers=headers)
    assert (response.status_code, response.json()) == (403, body)
    assert upstream.requests == []


def test_other_models_than_those_of_the_key_are_not_there(
    gateway, upstream, headers_for
):
    upstream.script = answers(COMPLETION)
    gateway.declare(name="large", fallbacks=("small",))
    headers = headers_for("ada", Rights(models=frozenset({"large", "absent"})))
    assert gateway.post(model="large", headers=headers).status_code == 200
    hidden, absent = (
        gateway.post(model=name, headers=headers) for name in ("small", "absent")
    )
    assert (hidden.status_code, hidden.json()) == (404, {"detail": NOT_FOUND})
    assert hidden.content == absent.content
    models = requests.get(
        f"{gateway.url}/v1/models", headers=headers, timeout=PATIENCE_S
    ).json()["data"]
    assert [model["id"] for model in models] == ["large"]
    # A fallback is no way to a model that the key may not call.
    upstream.script = answers({}, 500)
    upstream.requests.clear()
    assert gateway.post(model="large", headers=headers).status_code == 500
    assert len(upstream.requests) == 1


def test_a_key_calls_no_model_that_its_creator_may_not_call(
    gateway, upstream, headers_for
):
    upstream.script = answers(COMPLETION)
    names = frozenset({("acme", "ada"), ("acme", "bob")})
    gateway.declare(allow=Allow(everyone=False, principals=names))
    alone = Allow(everyone=False, principals=frozenset({("acme", "bob")}))
    gateway.declare(name="of bob", allow=alone)
    by_operator = headers_for("bob", Rights())
    by_ada = headers_for("bob", Rights(created_by="ada"))
    assert gateway.post(model="of bob", headers=by_operator).status_code == 200
    assert gateway.post(model="of bob", headers=by_ada).status_code == 404
    assert gateway.post(headers=by_ada).status_code == 200
