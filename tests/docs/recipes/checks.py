"""Use what test_recipes.py added to the copy of the tree in which this file runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command

from catalog.execution.context import Context
from catalog.execution.operations import GraphQLRequest
from catalog.models import Author
from catalog.views import executor
from gateway import configuration
from gateway.chat.models import ModelEndpoint
from gateway.chat.upstreams import registry
from webhooks_core import endpoints, profiles, publishing
from webhooks_core.models import Endpoint
from webhooks_core.profiles import SigningContext
from webhooks_core.signing.diagnosis import diagnose
from webhooks_core.signing.verification import Received, verify

API = Path("docs/api")
pytestmark = pytest.mark.django_db


def subscribed(profile: str, owner: str) -> Endpoint:
    url = "http://127.0.0.1:9/"
    return endpoints.create(
        profile=profile, owner=owner, url=url, event_types=[]
    ).endpoint


def test_the_project_is_consistent():
    call_command("check", fail_level="WARNING")
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_an_event_type_is_published_and_documented():
    endpoint = subscribed("gateway", "acme")
    call_command("emit_event", "ingest.failed", tenant="acme")
    assert endpoint.delivery_set.get().event.type == "ingest.failed"
    assert '"ingest.failed"' in (API / "openapi.json").read_text()


def test_a_product_publishes_and_is_documented():
    endpoint = subscribed("shop", "7")
    publishing.publish(profile="shop", owner="7", event_type="item.sold", data={"n": 1})
    assert endpoint.delivery_set.get().event.type == "item.sold"
    assert '"X-Shop-Signature"' in (API / "openapi.json").read_text()


@pytest.mark.parametrize("scheme", ["timestamped", "hex"])
def test_a_product_picks_a_signing_scheme(scheme):
    shop = replace(profiles.get("shop"), signature_scheme=scheme)
    profiles.register(shop)
    signed = shop.delivery_headers(
        SigningContext("e", "t", "d", 1_000, b"{}", ["secret"])
    )
    headers = {name.lower(): value for name, value in signed.items()}
    received = Received(path="/", headers=headers, body=b"{}", at=1_000)
    assert verify(received, secrets=["secret"], tolerance_s=300).is_verified
    assert diagnose(received, secrets=["secret"]) == []
    faults = diagnose(replace(received, body=b"{} "), secrets=["secret"])
    assert [str(fault.part) for fault in faults] == ["body"]
    overlaps = endpoints.may_overlap(subscribed("shop", "7"))
    assert overlaps is (scheme == "timestamped")


def test_a_field_of_the_catalog_is_resolved_with_plain_fields():
    author = Author.objects.create(first_name="Jane", last_name="Austen")
    author.books.create(name="Emma", page_count=474)
    query = "{ getAuthorById(id: %d) { fullName books { name author { fullName } } } }"
    response: Any = executor.answer(GraphQLRequest(query % author.pk), Context()).body
    book = {"name": "Emma", "author": {"fullName": "Jane Austen"}}
    expected = {"fullName": "Jane Austen", "books": [book]}
    assert response == {"data": {"getAuthorById": expected}}
    assert "fullName: String" in (API / "catalog.graphql").read_text()


def test_an_upstream_is_configured_and_completes(tmp_path):
    path = tmp_path / "hello.yaml"
    path.write_text("models: [{name: hello, upstream: hello}]")
    [entry] = configuration.load(path).models
    assert entry.upstream == "hello"
    ModelEndpoint(name="hello", upstream="hello").full_clean(exclude=["supports"])
    hello: Any = registry.connect(None)["hello"]
    completion = asyncio.run(hello.complete(SimpleNamespace(request_id="r")))
    assert b'"Hello"' in completion


def test_a_command_prints_json():
    output = StringIO()
    call_command("count_documents", json=True, stdout=output)
    assert output.getvalue() == '{"documents":0}\n'


def test_a_setting_has_its_default():
    assert settings.GATEWAY_GREETING == "Ahoy"
