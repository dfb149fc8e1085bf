"""Calls made up from the OpenAPI document: chat's answers keep to it and are no 5xx."""

import json
from copy import deepcopy
from typing import Any

import pytest
import schemathesis

from gateway.chat.routes import ROUTES
from gateway.configuration.shapes import Target
from tests.documented import DOCUMENT
from tests.fuzzing import assert_as_described, bounded
from tests.gateway.chat.harness import IDENTITY

UNANSWERED = {"/v1/embeddings", "/v1/models"}  # not echo's, and no POST


def _with_existing(document: Any) -> Any:
    """Return the document with the models of the test among those that calls name."""
    shape = document["components"]["schemas"]["GatewayChatRequest"]
    names = [{"const": "echo"}, {"const": "vectors"}, {"type": "string"}]
    shape["properties"]["model"] = {"anyOf": names}
    return document


CHAT = schemathesis.openapi.from_dict(_with_existing(deepcopy(DOCUMENT))).include(
    path_regex=r"^/(v2/chat|v1/(chat|embeddings|messages|models|responses))"
)


@pytest.mark.parametrize("path", [path for path in ROUTES if path not in UNANSWERED])
def test_what_the_reference_sends_is_answered_by_echo(gateway, path):
    gateway.declare(name="echo", upstream="echo", targets=(Target("", "echo-0ms"),))
    content = DOCUMENT["paths"][path]["post"]["requestBody"]["content"]
    example = content["application/json"]["examples"]["echo"]["value"]
    answer = gateway.post(json.dumps(example), path=path)
    assert answer.status_code == 200, answer.text


@CHAT.parametrize()
@bounded
def test_a_response_is_as_documented(case, gateway):
    for name, kind in (("echo", "chat"), ("vectors", "embedding")):
        target = Target("", "echo-0ms")
        gateway.declare(
            name=name, upstream="echo", inference_type=kind, targets=(target,)
        )
    case.headers.pop("Authorization", None)  # made up: it would decide alone
    assert_as_described(case, base_url=gateway.url, headers=IDENTITY)
