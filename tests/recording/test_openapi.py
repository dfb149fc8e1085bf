"""The OpenAPI document is complete, and true of the responses."""

from __future__ import annotations

import jsonschema
import orjson
import pytest

from config.operations.api_docs import openapi
from recording.errors import ERRORS
from tests.fuzzing import DOCUMENT
from tests.recording.conftest import URL
from tests.recording.test_errors import ROUTES
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db

OPERATIONS = {
    ("GET", "/v1/webhooks"): {200, 401, 500, 503},
    ("POST", "/v1/webhooks"): {201, 400, 401, 413, 415, 429, 500, 503},
    ("PATCH", "/v1/webhooks/{endpoint_id}"): {200, 400, 401, 404, 413, 415, 500, 503},
    ("DELETE", "/v1/webhooks/{endpoint_id}"): {200, 401, 404, 500, 503},
    ("POST", "/v1/webhooks/{endpoint_id}/test"): {200, 401, 404, 429, 500, 503},
    ("GET", "/v1/webhooks/{endpoint_id}/deliveries"): {200, 400, 401, 404, 500, 503},
    ("GET", "/v1/webhook-events/samples"): {200, 400, 401, 500, 503},
}


def operation(method, path):
    return DOCUMENT["paths"][path][method.lower()]


def schema_of(method, path, status):
    response = operation(method, path)["responses"][str(status)]
    [media_type] = response["content"]
    assert media_type == "application/json"
    return response["content"][media_type]["schema"]


def assert_valid(value, schema):
    jsonschema.validate(value, schema | {"components": DOCUMENT["components"]})


def test_the_file_is_what_the_code_says():
    assert orjson.loads(openapi()) == DOCUMENT


def test_the_routes_are_those_of_the_address_map():
    described = {(method, path) for method, path in OPERATIONS}
    for path, methods in ROUTES.items():
        parts = ["{endpoint_id}" if p.startswith("ep_") else p for p in path.split("/")]
        for method in methods - {"HEAD"}:
            described.remove((method, "/v1/" + "/".join(parts)))
    assert not described


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_an_operation_names_every_status_with_an_example(method, path):
    described = operation(method, path)
    assert {int(status) for status in described["responses"]} == OPERATIONS[
        method, path
    ]
    assert described["security"] == [{"recordingBearer": []}]
    for status, response in described["responses"].items():
        [example] = response["content"]["application/json"]["examples"].values()
        assert_valid(example["value"], schema_of(method, path, status))
        assert response["description"]


def test_the_outgoing_events_are_described_with_examples():
    for name in ("summary.completed", "webhook.ping"):
        content = DOCUMENT["webhooks"][name]["post"]["requestBody"]["content"][
            "application/json"
        ]
        [example] = content["examples"].values()
        assert example["value"]["type"] == name
        assert_valid(example["value"], content["schema"])


def test_every_response_fits_its_schema(api):
    """One call of each operation, its response checked against the document."""
    post = {"url": URL, "events": ["summary.completed"]}
    created = api.post("webhooks", post)
    endpoint_id = created.json()["endpoint_id"]
    publish(
        profile="recording",
        owner=api.owner,
        event_type="summary.completed",
        data={"audio_id": "aud_1"},
    )
    template = "/v1/webhooks/{endpoint_id}"
    path = f"webhooks/{endpoint_id}"
    responses = {
        ("POST", "/v1/webhooks"): created,
        ("GET", "/v1/webhooks"): api.get("webhooks"),
        ("PATCH", template): api.patch(path, post),
        ("POST", f"{template}/test"): api.post(f"{path}/test"),
        ("GET", f"{template}/deliveries"): api.get(f"{path}/deliveries"),
        ("GET", "/v1/webhook-events/samples"): api.get(
            "webhook-events/samples?event=summary.completed"
        ),
        ("DELETE", template): api.delete(path),
    }
    assert responses.keys() == OPERATIONS.keys()
    for (method, where), response in responses.items():
        assert_valid(response.json(), schema_of(method, where, response.status_code))


def test_every_error_fits_the_one_shape():
    for kind in ERRORS.values():
        assert_valid(kind().body, DOCUMENT["components"]["schemas"]["RecordingError"])
