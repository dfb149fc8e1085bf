"""The OpenAPI document as a whole: nothing is missing."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from django.urls import URLResolver, get_resolver

from tests.documented import DOCUMENT, assert_valid
from webhooks_core import profiles
from webhooks_core.management.receiver import Received, verify
from webhooks_core.profiles import SigningContext
from webhooks_core.web import openapi

# Pages for people, GraphQL, MCP and OAuth, which describe themselves, and operators' addresses.
NOT_DESCRIBED = (
    *("accounts", "admin", "docs", "graphql", "mcp", "portal"),
    *("oauth/", ".well-known/"),  # its metadata describes OAuth
    *("healthz", "readyz", "metrics", "openapi.json", "favicon.ico"),
)


def addresses(patterns: Iterable[Any], prefix: str = "/") -> Iterator[str]:
    """Yield the address of each pattern, as the document writes it."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if address.lstrip("/").startswith(NOT_DESCRIBED):
            continue
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, address)
        elif address != "/":
            yield address.replace("<str:", "<").replace("<path:", "<")


@pytest.mark.slow
def test_every_address_for_programs_is_described():
    described = {path.replace("{", "<").replace("}", ">") for path in DOCUMENT["paths"]}
    mapped = {*addresses(get_resolver().url_patterns)}
    # An empty name is no model's.
    assert mapped - {"/v1/models/", "/v2/models/", "/models/"} == described


def test_every_operation_has_a_unique_id_and_a_tag():
    operations = [
        operation for path in DOCUMENT["paths"].values() for operation in path.values()
    ]
    names = {operation["operationId"] for operation in operations}
    assert len(names) == len(operations)
    assert all(operation["tags"] and operation["summary"] for operation in operations)


def described(webhook) -> tuple[set[str], dict[str, object]]:
    """Return the names of the headers of an outgoing request, and its example."""
    post = webhook["post"]
    [example] = post["requestBody"]["content"]["application/json"]["examples"].values()
    return {parameter["name"] for parameter in post["parameters"]}, example["value"]


def test_the_webhooks_are_the_event_types_of_the_registered_products():
    # A page of its own describes what MCP Events send: docs/connect.md.
    described_here = [each for each in profiles.registered() if each.prepare is None]
    assert len(described_here) == len(profiles.registered()) - 1
    names = {name for profile in described_here for name in profile.event_types}
    assert DOCUMENT["webhooks"].keys() == names
    for profile in described_here:
        for name in profile.event_types:
            headers, example = described(DOCUMENT["webhooks"][name])
            sending = SigningContext("evt_1", name, "dlv_1", 1, b"{}", ["s"])
            sent = profile.delivery_headers(sending).keys() - {"Content-Type"}
            assert headers == sent
            assert example["type"] == name


def test_an_example_of_an_outgoing_request_verifies():
    for name in ("summary.completed", "ingest.completed"):
        webhook = DOCUMENT["webhooks"][name]["post"]
        _, example = described(DOCUMENT["webhooks"][name])
        given = {
            parameter["name"].lower(): parameter["example"]
            for parameter in webhook["parameters"]
        }
        at = int(openapi.SAMPLE_TIMESTAMP)
        body = orjson.dumps(example)
        request = Received(given, body, at)
        secrets = [openapi.SAMPLE_SECRET]
        assert verify(request, secrets=secrets, tolerance_s=300).is_verified


def test_a_product_of_another_project_is_described_too(plain):
    twin = replace(plain, name="twin", header_prefix="")
    profiles.register(twin)
    try:
        described_now = openapi.add_webhooks({})["webhooks"]
    finally:
        profiles.PROFILES.pop("twin")
    assert described_now["thing.made"]["post"]["tags"] == ["Plain webhooks"]
    headers, _ = described(described_now["twin.thing.made"])
    assert "X-Twin-Signature" in headers


def bodies(operation: dict[str, Any]) -> Iterator[Any]:
    for holder in (operation.get("requestBody", {}), *operation["responses"].values()):
        yield from holder.get("content", {}).values()


def test_every_example_fits_its_schema():
    count = 0
    for operations in (*DOCUMENT["paths"].values(), *DOCUMENT["webhooks"].values()):
        for operation in operations.values():
            for body in bodies(operation):
                for example in body.get("examples", {}).values():
                    assert_valid(example["value"], body["schema"], operation["summary"])
                    count += 1
    assert count
