"""Every page and action: for its owner alone."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern

from recording.webhook_pages import AccountDoor
from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.pages.conftest import BASE, Person
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.pages.urls import urls
from webhooks_core.publishing import publish

PATTERNS: list[URLPattern] = urls(AccountDoor())[0]
FORGED = {"ep": f"ep_{'0' * 26}", "dlv": f"dlv_{'0' * 26}"}


def addresses(endpoint_id: str, delivery_id: str) -> list[str]:
    ids = {"endpoint_id": endpoint_id, "delivery_id": delivery_id}
    routes = [f"{BASE}{pattern.pattern}" for pattern in PATTERNS]
    for name, value in ids.items():
        routes = [route.replace(f"<str:{name}>", value) for route in routes]
    assert not any("<" in route for route in routes)
    return routes


def of_an_endpoint(endpoint_id: str, delivery_id: str) -> list[str]:
    fixed = {f"{BASE}{each.pattern}" for each in PATTERNS}
    return [each for each in addresses(endpoint_id, delivery_id) if each not in fixed]


def of_a_tenant() -> tuple[str, str]:
    tenant: dict[str, Any] = {"profile": "gateway", "owner": "acme"}
    metadata = {"request_id": "r", "principal_id": "p", "trace_id": "t"}
    created = endpoints.create(
        **tenant, url="https://93.184.216.34/", event_types=[]
    ).endpoint
    publish(**tenant, event_type="ingest.completed", data={}, metadata=metadata)
    return created.public_id, Delivery.objects.get(endpoint=created).public_id


def of_a_stranger(mallory: Person) -> tuple[str, str]:
    endpoint = mallory.endpoint()
    return endpoint.public_id, mallory.delivery(endpoint).public_id


def of_a_deleted_endpoint(ada: Person) -> tuple[str, str]:
    endpoint = ada.endpoint()
    delivery = ada.delivery(endpoint)
    endpoints.delete(endpoint)
    return endpoint.public_id, delivery.public_id


def test_only_the_owner_sees_and_does_anything(ada, mallory):
    foreign = [
        of_a_stranger(mallory),
        of_a_tenant(),
        of_a_deleted_endpoint(ada),
        (FORGED["ep"], FORGED["dlv"]),
        ("ep_1", "dlv_1"),
        ("%00", "%00"),
        ("x" * 3000, "x" * 3000),
        (FORGED["dlv"], FORGED["ep"]),
    ]
    ada.page()  # the use of the session is stored
    with nothing_changes():
        for ids in foreign:
            for address in of_an_endpoint(*ids):
                seen = ada.browser.get(address).status_code
                assert (address, seen) in [(address, 404), (address, 405)]
                done = ada.browser.post(address, {"action": "rotate"}).status_code
                assert (address, done) in [(address, 404), (address, 405)]


def test_each_page_is_there_for_its_owner(ada):
    endpoint = ada.endpoint()
    delivery = ada.delivery(endpoint)
    for address in addresses(endpoint.public_id, delivery.public_id):
        assert ada.browser.get(address).status_code in {200, 405}, address


def test_without_a_login_every_address_leads_there_and_does_nothing(ada):
    endpoint = ada.endpoint()
    delivery = ada.delivery(endpoint)
    anyone = Client()
    with nothing_changes():
        for address in addresses(endpoint.public_id, delivery.public_id):
            seen, done = anyone.get(address), anyone.post(address)
            if seen.status_code != 405:
                assert seen["Location"] == f"/accounts/login?next={address}"
            if done.status_code != 405:
                assert done["Location"] == f"/accounts/login?next={BASE}"


def test_every_form_needs_its_token(ada):
    endpoint = ada.endpoint()
    delivery = ada.delivery(endpoint)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = ada.browser.cookies
    with nothing_changes():
        for address in addresses(endpoint.public_id, delivery.public_id):
            assert strict.post(address).status_code == 403, address


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_no_other_method_is_accepted(ada, method):
    address = f"{BASE}/endpoints/{ada.endpoint().public_id}"
    assert getattr(ada.browser, method)(address).status_code == 405
    assert Endpoint.objects.filter(deleted_at=None).count() == 1
