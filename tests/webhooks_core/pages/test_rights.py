"""Every page and action: for its owner alone."""

from typing import Any

from django.test import Client
from django.urls import URLPattern

from gateway.event_types import INGEST_COMPLETED as INGEST
from recording.webhook_pages import AccountDoor
from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.pages.conftest import BASE, Person
from webhooks_core import endpoints
from webhooks_core.models import Delivery
from webhooks_core.pages.urls import urls
from webhooks_core.publishing import publish

PATTERNS: list[URLPattern] = urls(AccountDoor())[0]
Ids = tuple[str, str]
FORGED: Ids = (f"ep_{'0' * 26}", f"dlv_{'0' * 26}")


def addresses(ids: Ids) -> list[str]:
    """Return all addresses, with these ids where an address has one."""
    routes = [f"{BASE}{pattern.pattern}" for pattern in PATTERNS]
    for name, value in zip(("endpoint_id", "delivery_id"), ids, strict=True):
        routes = [route.replace(f"<str:{name}>", value) for route in routes]
    assert not any("<" in route for route in routes)
    return routes


def with_an_id(ids: Ids) -> list[str]:
    return [each for each in addresses(ids) if any(part in each for part in ids)]


def ids_of(delivery: Delivery) -> Ids:
    return delivery.endpoint.public_id, delivery.public_id


def of_a_tenant() -> Ids:
    tenant: Any = {"profile": "gateway", "owner": "acme"}
    metadata = {"request_id": "r", "principal_id": "p", "trace_id": "t"}
    endpoints.create(**tenant, url="https://93.184.216.34/", event_types=[])
    event = publish(**tenant, event_type=INGEST, data={}, metadata=metadata)
    return ids_of(Delivery.objects.get(event=event))


def of_a_deleted_endpoint(ada: Person) -> Ids:
    delivery = ada.delivery(ada.endpoint())
    endpoints.delete(delivery.endpoint)
    return ids_of(delivery)


def test_only_the_owner_sees_and_does_anything(ada, mallory):
    theirs = mallory.delivery(mallory.endpoint())
    mine = ids_of(ada.delivery(ada.endpoint()))
    foreign = [ids_of(theirs), of_a_tenant(), of_a_deleted_endpoint(ada), FORGED]
    foreign += [("ep_1", "dlv_1"), ("%00", "%00"), ("x" * 3000,) * 2, FORGED[::-1]]
    ada.page()  # the use of the session is stored
    with nothing_changes():
        for address in [each for ids in foreign for each in with_an_id(ids)]:
            for method in (ada.browser.get, ada.browser.post):
                assert method(address).status_code in {404, 405}, address
    for query in ("", f"&endpoint={theirs.endpoint.public_id}"):
        shown = ada.page(f"/deliveries?show=all&id={theirs.event.public_id}{query}")
        assert f"/deliveries/{theirs.public_id}" not in shown
    for address in addresses(mine):
        assert ada.browser.get(address).status_code in {200, 405}, address


def test_without_a_login_or_the_token_of_a_form_nothing_is_done(ada):
    ids = ids_of(ada.delivery(ada.endpoint()))
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = ada.browser.cookies
    anyone = Client()
    with nothing_changes():
        for address in addresses(ids):
            assert strict.post(address).status_code == 403, address
            seen, done = anyone.get(address), anyone.post(address)
            if seen.status_code != 405:
                assert seen["Location"] == f"/accounts/login/?next={address}"
            assert done["Location"] == f"/accounts/login/?next={BASE}"
        for method in ("put", "delete", "patch"):
            response = getattr(ada.browser, method)(addresses(ids)[0])
            assert response.status_code == 405
