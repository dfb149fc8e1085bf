"""What the OpenAPI document sends: echo answers it."""

import json

import pytest

from gateway.chat.routes import ROUTES
from gateway.configuration.shapes import Target
from tests.documented import DOCUMENT

UNANSWERED = {"/v1/embeddings", "/v1/models"}  # not echo's, and no POST


@pytest.mark.parametrize("path", [path for path in ROUTES if path not in UNANSWERED])
def test_what_the_reference_sends_is_answered_by_echo(gateway, path):
    gateway.declare(name="echo", upstream="echo", targets=(Target("", "echo-0ms"),))
    content = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]
    example = content["application/json"]["examples"]["echo"]["value"]
    answer = gateway.post(json.dumps(example), path=path)
    assert answer.status_code == 200, answer.text
