"""The OpenAPI document: complete, true of the answers, and true of what generated calls get."""

from __future__ import annotations

import jsonschema
import pytest

from gateway.webhooks import EVENT_TYPES
from tests.fuzzing import DESCRIBED, DOCUMENT, assert_as_described, bounded
from tests.gateway.client import INGEST, PATH
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db

ONE = f"{PATH}/{{subscription_id}}"
COMMON = {401, 500, 503}
BODY = {400, 413, 415}
OPERATIONS = {
    ("GET", PATH): {200, 400} | COMMON,
    ("POST", PATH): {201, 429} | BODY | COMMON,
    ("GET", ONE): {200, 404} | COMMON,
    ("PATCH", ONE): {200, 404, 409} | BODY | COMMON,
    ("DELETE", ONE): {204, 404, 409} | COMMON,
    ("POST", f"{ONE}/test"): {202, 404, 409, 429} | COMMON,
    ("GET", f"{ONE}/deliveries"): {200, 400, 404} | COMMON,
    ("POST", INGEST): {200, 201, 429} | BODY | COMMON,
}


def described(method, path):
    return DOCUMENT["paths"][path][method.lower()]


def assert_valid(value, schema):
    jsonschema.validate(value, schema | {"components": DOCUMENT["components"]})


def test_the_operations_are_those_of_the_specification():
    ours = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        if path.startswith((PATH, INGEST))
        for method in operations
    }
    assert ours == OPERATIONS.keys()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_an_operation_names_every_status_with_an_example(method, path):
    operation = described(method, path)
    statuses = {int(status) for status in operation["responses"]}
    assert statuses == OPERATIONS[method, path]
    assert operation["security"] == [
        {"gatewayKey": []},
        {"gatewayTenant": [], "gatewayPrincipal": []},
    ]
    for status, response in operation["responses"].items():
        assert response["description"]
        if status == "204":
            continue
        content = response["content"]["application/json"]
        [example] = content["examples"].values()
        assert_valid(example["value"], content["schema"])


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_every_event_type_is_described_with_an_example(name):
    content = DOCUMENT["webhooks"][name]["post"]["requestBody"]["content"]
    [example] = content["application/json"]["examples"].values()
    assert example["value"]["type"] == name
    assert_valid(example["value"], content["application/json"]["schema"])
    assert_valid(EVENT_TYPES[name].sample, dict(EVENT_TYPES[name].schema))


def test_every_answer_fits_its_schema(acme):
    created = acme.call("POST", PATH, {"url": "http://127.0.0.1:9/"})
    one = f"{PATH}/{created.json()['id']}"
    answers = {
        ("POST", PATH): created,
        ("POST", INGEST): acme.ingest(metadata={"a": 1}),
        ("POST", f"{ONE}/test"): acme.call("POST", f"{one}/test"),
        ("GET", PATH): acme.call("GET", PATH),
        ("GET", ONE): acme.call("GET", one),
        ("PATCH", ONE): acme.call("PATCH", one, {"active": False}),
        ("GET", f"{ONE}/deliveries"): acme.call("GET", f"{one}/deliveries"),
    }
    assert answers.keys() == OPERATIONS.keys() - {("DELETE", ONE)}
    for (method, path), response in answers.items():
        operation = described(method, path)["responses"][str(response.status_code)]
        assert_valid(
            response.json(), operation["content"]["application/json"]["schema"]
        )


OURS = DESCRIBED.include(path_regex=r"^/v1/(webhooks/subscriptions|ingest|usage)")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_resolver")
@OURS.parametrize()
@bounded
def test_a_response_is_as_documented(acme, case):
    mine = Endpoint.objects.of("gateway", "acme")

    def existing() -> str:
        operation = mine.values_list("public_id", flat=True).first()
        return operation or acme.create()["id"]

    identity = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
    assert_as_described(case, existing=existing, headers=identity)
