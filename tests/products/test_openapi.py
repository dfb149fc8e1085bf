"""The OpenAPI document: each operation of the products, and each status."""

from typing import Any

import pytest

from gateway import errors as gateway
from recording import errors as recording
from tests.documented import DOCUMENT, assert_valid
from tests.gateway.client import EVENTS, INGEST
from tests.products.product import GATEWAY, RECORDING

# Keys of the gateway have scopes.
ALWAYS = {"recording": {401, 500, 503}, "gateway": {401, 403, 500, 503}}
BODY = {400, 413, 415}
HOOKS, HOOK = RECORDING.path, f"{RECORDING.path}/{{endpoint_id}}"
SUBSCRIPTIONS, SUBSCRIPTION = GATEWAY.path, f"{GATEWAY.path}/{{subscription_id}}"


def _owner_operations(one: str) -> dict[tuple[str, str], set[int]]:
    """Return what is below one subscription besides the contract."""
    delivery, found = f"{one}/deliveries/{{delivery_id}}", {400, 404}
    return {
        ("GET", f"{one}/settings"): {200, 409} | found,
        ("PATCH", f"{one}/settings"): {200, 404, 409} | BODY,
        ("POST", f"{one}/secret/rotate"): {200, 404, 409} | BODY,
        ("GET", delivery): {200, 410} | found,
        ("POST", f"{delivery}/resend"): {202, 409, 410, 429} | found,
        ("POST", f"{one}/resend"): {200, 202, 404, 409, 429} | BODY,
    }


OPERATIONS = {
    "recording": {
        **_owner_operations(HOOK),
        ("GET", HOOKS): {200},
        ("POST", HOOKS): {201, 429} | BODY,
        ("PATCH", HOOK): {200, 404} | BODY,
        ("DELETE", HOOK): {200, 404},
        ("POST", f"{HOOK}/test"): {200, 404, 429},
        ("GET", f"{HOOK}/deliveries"): {200, 400, 404},
        ("GET", "/v1/webhook-events/samples"): {200, 400},
    },
    "gateway": {
        **_owner_operations(SUBSCRIPTION),
        ("GET", SUBSCRIPTIONS): {200},
        ("POST", SUBSCRIPTIONS): {201, 429} | BODY,
        ("GET", SUBSCRIPTION): {200, 404},
        ("PATCH", SUBSCRIPTION): {200, 404, 409} | BODY,
        ("DELETE", SUBSCRIPTION): {204, 404, 409},
        ("POST", f"{SUBSCRIPTION}/test"): {202, 404, 409, 429},
        ("GET", f"{SUBSCRIPTION}/deliveries"): {200, 400, 404},
        ("POST", INGEST): {200, 201, 429} | BODY,
        ("POST", EVENTS): {202, 422, 429} | BODY,
    },
}
SECURITY: dict[str, Any] = {
    "recording": [{"recordingBearer": []}],
    "gateway": [{"gatewayKey": []}, {"gatewayTenant": [], "gatewayPrincipal": []}],
}
HANDLERS = {"recording": recording.HANDLER, "gateway": gateway.HANDLER}
EACH = [
    (name, method, path)
    for name, operations in OPERATIONS.items()
    for method, path in operations
]


def test_the_operations_are_all_that_there_are():
    described = {
        (method.upper(), path)
        for path, operations in DOCUMENT["paths"].items()
        if path.startswith(("/v1/webhook", INGEST, EVENTS))
        for method in operations
    }
    assert described == {(method, path) for _, method, path in EACH}


@pytest.mark.parametrize(("name", "method", "path"), EACH)
def test_an_operation_names_every_status(name, method, path):
    operation = DOCUMENT["paths"][path][method.lower()]
    statuses = {int(status) for status in operation["responses"]}
    assert statuses == OPERATIONS[name][method, path] | ALWAYS[name]
    assert operation["security"] == SECURITY[name]
    for response in operation["responses"].values():
        assert response["description"]


def test_every_error_fits_the_one_shape():
    for name, handler in HANDLERS.items():
        schema = DOCUMENT["components"]["schemas"][f"{name.title()}Error"]
        for kind in handler.kinds.values():
            assert_valid(handler.body(kind()), schema)
