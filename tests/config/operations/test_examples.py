"""Each example of a JSON request in the API reference gets a documented response when sent."""

from __future__ import annotations

import re

import orjson
import pytest

from gateway import keys
from gateway.identity import SCOPES
from recording.accounts import personal_tokens
from tests.documented import DOCUMENT
from tests.factories import UserFactory

JSON = "application/json"
# tests/gateway/chat sends those of chat. Embeddings need an upstream that makes them.
OTHERS = (
    *("/v1/chat", "/v2/chat", "/chat", "/v1/embeddings"),
    *("/v1/messages", "/v1/responses"),
)


def examples():
    """Yield the method, path, security schemes, and body of every example of a JSON request."""
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            if not path.startswith(OTHERS):
                for example in content.get(JSON, {}).get("examples", {}).values():
                    schemes = {name for one in operation["security"] for name in one}
                    yield method, path, schemes, example["value"]


@pytest.mark.django_db
@pytest.mark.usefixtures("no_resolver")
def test_every_example_of_a_json_request_is_accepted(client):
    token = personal_tokens.create(user=UserFactory.create(), days=1).text
    key = keys.create(tenant="acme", principal="ada", scopes=SCOPES).text
    ids: dict[str, str] = {}
    for method, path, schemes, body in examples():
        bearer = token if "recordingBearer" in schemes else key
        headers = {"Authorization": f"Bearer {bearer}"}
        target = re.sub(r"\{(\w+)\}", lambda match: ids[match[1]], path)
        response = client.generic(
            method.upper(), target, orjson.dumps(body), JSON, headers=headers
        )
        assert response.status_code in {200, 201, 202}, (target, response.content)
        documented = DOCUMENT["paths"][path][method]["responses"]
        assert str(response.status_code) in documented
        if path == "/v1/webhooks":
            ids["endpoint_id"] = response.json()["endpoint_id"]
        if path == "/v1/webhooks/subscriptions":
            ids["subscription_id"] = response.json()["id"]
    assert ids.keys() == {"endpoint_id", "subscription_id"}
