"""What a key may call: its scope and models, and the models of the principal that created it."""

import re

import pytest

from gateway.configuration.shapes import Allow
from gateway.identity import Rights
from tests.gateway.chat.harness import (
    IDENTITY,
    NOT_FOUND,
    V1,
    V2,
    ask_models,
    raw_request,
)
from tests.gateway.chat.mock_upstream import COMPLETION, answers


@pytest.fixture
def headers_for(key_of):
    return lambda *caller: {"Authorization": f"Bearer {key_of(*caller)}"}


@pytest.mark.parametrize("path", [V2, V1, "/v1/messages"])
def test_a_key_without_the_scope_calls_no_model(gateway, upstream, headers_for, path):
    headers = headers_for("ada", Rights(frozenset({"ingest"})))
    response = gateway.post(path=path, headers=headers)
    body, text = response.json(), "This needs a gateway key with the scope chat."
    assert response.status_code == 403
    if path == V2:
        assert body == {"detail": text}
    else:
        error = body["error"]
        assert (error["type"], error["message"]) == ("permission_error", text)
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
    models = ask_models(gateway, "", **headers).json()["data"]
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
    names = frozenset({"acme/ada", "acme/bob"})
    gateway.declare(allow=Allow(everyone=False, principals=names))
    alone = Allow(everyone=False, principals=frozenset({"acme/bob"}))
    gateway.declare(name="of bob", allow=alone)
    by_operator = headers_for("bob", Rights())
    by_ada = headers_for("bob", Rights(created_by="ada"))
    assert gateway.post(model="of bob", headers=by_operator).status_code == 200
    assert gateway.post(model="of bob", headers=by_ada).status_code == 404
    assert gateway.post(headers=by_ada).status_code == 200


def test_keys_of_two_clients_in_two_headers_are_refused(gateway, upstream, key_of):
    lines = b"".join(
        b"Authorization: Bearer %s\r\n" % key_of("ada").encode() for _ in range(2)
    )
    request = raw_request().replace(b"Content-Length", lines + b"Content-Length", 1)
    for name in IDENTITY:
        request = re.sub(rb"%s: [^\r]*\r\n" % name.encode(), b"", request)
    with gateway.connected(request) as client:
        assert client.recv(12) == b"HTTP/1.1 401"
    assert upstream.requests == []
