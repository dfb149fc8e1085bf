"""The OpenAPI document and the page of each product: complete, and true of the code."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from django.conf import settings
from django.core.management import get_commands

from gateway import errors as gateway
from gateway import ingest, keys
from gateway import serializers as gateway_serializers
from gateway.chat.upstreams.registry import KINDS
from gateway.configuration import shapes
from gateway.serializers import MAX_METADATA_DEPTH
from recording import errors as recording
from recording import serializers as recording_serializers
from recording.library import event_data
from tests.documented import DOCUMENT, assert_valid
from tests.gateway.client import EVENTS, INGEST
from tests.products.product import GATEWAY, PRODUCTS, RECORDING
from webhooks_core import profiles
from webhooks_core.web.parsers import MAX_BODY_BYTES

# Keys of the gateway have scopes.
ALWAYS = {"recording": {401, 500, 503}, "gateway": {401, 403, 500, 503}}
BODY = {400, 413, 415}
HOOKS, HOOK = RECORDING.path, f"{RECORDING.path}/{{endpoint_id}}"
SUBSCRIPTIONS, SUBSCRIPTION = GATEWAY.path, f"{GATEWAY.path}/{{subscription_id}}"


def _owner_operations(one: str) -> dict[tuple[str, str], set[int]]:
    """Return what is below one subscription besides the contract."""
    delivery, replay = (
        f"{one}/deliveries/{{delivery_id}}",
        f"{one}/replays/{{replay_id}}",
    )
    found = {400, 404}
    verb = {202, 409, 410, 429} | found
    return {
        ("GET", f"{one}/state"): {200} | found,
        ("GET", f"{one}/why"): {200} | found,
        ("GET", f"{one}/changes"): {200} | found,
        ("GET", f"{one}/settings"): {200, 409} | found,
        ("PATCH", f"{one}/settings"): {200, 404, 409} | BODY,
        ("POST", f"{one}/secret/rotate"): {200, 404, 409} | BODY,
        ("GET", delivery): {200, 410} | found,
        ("POST", f"{delivery}/resend"): verb,
        ("POST", f"{delivery}/retry-now"): verb,
        ("POST", f"{delivery}/cancel"): verb,
        ("POST", f"{one}/replay"): {200, 202, 404, 409, 429} | BODY,
        ("GET", replay): {200} | found,
        ("POST", f"{replay}/cancel"): {202, 409} | found,
    }


OPERATIONS = {
    "recording": {
        **_owner_operations(HOOK),
        ("GET", "/v1/webhook-events"): {200, 400},
        ("GET", "/v1/webhook-events/types"): {200, 400},
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
        ("GET", f"{SUBSCRIPTIONS}/events"): {200, 400},
        ("GET", f"{SUBSCRIPTIONS}/event-types"): {200, 400},
        ("GET", SUBSCRIPTIONS): {200, 400},
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
PAGES = {
    name: (settings.BASE_DIR / "docs" / f"{name}.md").read_text() for name in PRODUCTS
}
OWNERS = (settings.BASE_DIR / "docs" / "owners.md").read_text()
SETTINGS = (settings.BASE_DIR / "docs" / "settings.md").read_text()
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
def test_an_operation_names_every_status_with_an_example(name, method, path):
    operation = DOCUMENT["paths"][path][method.lower()]
    statuses = {int(status) for status in operation["responses"]}
    assert statuses == OPERATIONS[name][method, path] | ALWAYS[name]
    assert operation["security"] == SECURITY[name]
    for status, response in operation["responses"].items():
        assert response["description"]
        if status != "204":
            assert len(response["content"]["application/json"]["examples"]) == 1
    assert _is_named(name, method, path)


def _is_named(product: str, method: str, path: str) -> bool:
    """Return True if the page of the product, or that of owners, has a row for an operation."""
    below = path.removeprefix(SUBSCRIPTION if product == "gateway" else HOOK)
    rows = (f"| {method} | `{path}` |", f"| {method} | `…{below}", f"`{method} {path}`")
    return rows[0] in PAGES[product] or any(row in OWNERS for row in rows[1:])


def test_every_error_fits_the_one_shape():
    for name, handler in HANDLERS.items():
        schema = DOCUMENT["components"]["schemas"][f"{name.title()}Error"]
        for kind in handler.kinds.values():
            assert_valid(handler.body(kind()), schema)


# ── The pages ───────────────────────────────────────────────────────────────────────


def test_the_tables_of_errors_are_the_code_s():
    row = re.compile(r"^\| (\d{3}) \|(?: `(\w+)` \|)?", re.MULTILINE)
    codes = {(int(status), code) for status, code in row.findall(PAGES["recording"])}
    assert codes == {*recording.CODES.items()}
    assert {int(row) for row, _ in row.findall(PAGES["gateway"])} == {*gateway.ERRORS}


def test_every_field_event_type_and_key_is_named():
    names: dict[str, list[Any]] = {
        "recording": [
            recording_serializers.SubscriptionSerializer().fields,
            recording_serializers.SubscriptionCreatedSerializer().fields,
            recording_serializers.DeliverySerializer().fields,
        ],
        "gateway": [
            gateway_serializers.SubscriptionSerializer().fields,
            gateway_serializers.DeliverySerializer().fields,
            gateway_serializers.NewEventSerializer().fields,
            gateway_serializers.PublishedSerializer().fields,
            *(
                [field.name for field in dataclasses.fields(shape)]
                for shape in (
                    *(shapes.WebhookSettings, shapes.StaticSubscription),
                    shapes.DeclaredEventType,
                    *(shapes.DeclaredModel, shapes.Target, shapes.Timeouts),
                    shapes.BudgetEntry,
                )
            ),
            KINDS,
            ingest.CONTENT_TYPES,
        ],
    }
    for product, groups in names.items():
        types = profiles.get(product).event_types
        published = [
            item.schema["properties"]
            for name, item in types.items()
            if name != "webhook.ping"
        ]
        for group in (*groups, types, *published):
            assert not [name for name in group if f"`{name}`" not in PAGES[product]]


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_command_and_setting_exists(name):
    known = get_commands()
    named = set(re.findall(r"manage\.py (\w+)", PAGES[name]))
    assert named <= known.keys()
    assert named >= {
        "recording": {"import_recording"},
        "gateway": {command for command, app in known.items() if app == "gateway"},
    }.get(name, set())
    variables = set(re.findall(r"`((?:GATEWAY|WEBHOOK)_\w+)`", PAGES["gateway"]))
    assert variables
    assert variables <= set(re.findall(r"^\| `(\w+)`", SETTINGS, re.MULTILINE))


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_numbers_are_the_code_s(name):
    profile = profiles.get(name)
    attempts = f"{profile.retry.max_attempts} attempts of {profile.timeout_s:g} seconds"
    phrases = {
        "recording": (
            f"After {profile.disable_after} failed attempts in a row",
            f"{event_data.TARGET:,} bytes",
        ),
        "gateway": (
            f"up to {attempts}",
            "0.5 s and 1 s apart",
            f"within {keys.CACHE_S:g} seconds",
            f"{settings.GATEWAY_INGEST_MAX_BYTES:,} bytes of UTF-8",
            f"at most {ingest.CHUNK_CHARACTERS:,} characters",
            f"{ingest.MAX_METADATA_BYTES:,} bytes and {MAX_METADATA_DEPTH} levels",
        ),
    }
    shared = (f"at most {profile.quota} subscriptions", f"{MAX_BODY_BYTES // 1024} KiB")
    for phrase in (*shared, *phrases[name]):
        assert phrase in PAGES[name]
