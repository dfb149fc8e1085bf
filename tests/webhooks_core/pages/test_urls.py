"""Every page and action: for its owner alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern
from django.utils import timezone

from gateway.event_types import INGEST_COMPLETED as INGEST
from recording.webhook_pages import AccountDoor
from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.pages.conftest import BASE, Person
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.owners.replay_jobs import Kind, Selection
from webhooks_core.pages.urls import urls
from webhooks_core.publishing import publish

PATTERNS: list[URLPattern] = urls(AccountDoor())[0]
Ids = tuple[str, str, str]
FORGED: Ids = (f"ep_{'0' * 26}", f"dlv_{'0' * 26}", f"rpl_{'0' * 26}")


def addresses(ids: Ids) -> list[str]:
    """Return all addresses, those of these ids last."""
    routes = [f"{BASE}{pattern.pattern}" for pattern in PATTERNS]
    names = ("endpoint_id", "delivery_id", "replay_id")
    for name, value in zip(names, ids, strict=True):
        routes = [route.replace(f"<str:{name}>", value) for route in routes]
    assert not any("<" in route for route in routes)
    return routes


def with_an_id(ids: Ids) -> list[str]:
    fixed = {f"{BASE}{each.pattern}" for each in PATTERNS}
    return [each for each in addresses(ids) if each not in fixed]


def ids_of(delivery: Delivery) -> Ids:
    """Return the ids of a delivery, its endpoint, and a replay to it."""
    endpoint, since = delivery.endpoint, timezone.now() - timedelta(days=1)
    selection = Selection(kind=Kind.FAILED, since=since, until=timezone.now())
    replay = replay_jobs.start(endpoint, selection, by=changes.COMMAND)
    return endpoint.public_id, delivery.public_id, replay.public_id


def of_a_tenant() -> Ids:
    tenant: Any = {"profile": "gateway", "owner": "acme"}
    metadata = {"request_id": "r", "principal_id": "p", "trace_id": "t"}
    endpoints.create(**tenant, url="https://93.184.216.34/", event_types=[])
    event = publish(**tenant, event_type=INGEST, data={}, metadata=metadata)
    return ids_of(Delivery.objects.get(event=event))


def of_a_stranger(mallory: Person) -> Ids:
    return ids_of(mallory.delivery(mallory.endpoint()))


def of_a_deleted_endpoint(ada: Person) -> Ids:
    delivery = ada.delivery(ada.endpoint())
    ids = ids_of(delivery)
    endpoints.delete(delivery.endpoint)
    return ids


def test_only_the_owner_sees_and_does_anything(ada, mallory):
    theirs = of_a_stranger(mallory)
    mine = ids_of(ada.delivery(ada.endpoint()))
    foreign: list[Ids] = [theirs, of_a_tenant(), of_a_deleted_endpoint(ada), FORGED]
    asked = [address for ids in foreign for address in with_an_id(ids)]
    # Somebody else's replay, below an endpoint of one's own.
    asked += [each for each in with_an_id((*mine[:2], theirs[2])) if theirs[2] in each]
    ada.page()  # the use of the session is stored
    with nothing_changes():
        for address in asked:
            seen = ada.browser.get(address).status_code
            assert (address, seen) in [(address, 404), (address, 405)]
            done = ada.browser.post(address, {"action": "rotate"}).status_code
            assert (address, done) in [(address, 404), (address, 405)]


@pytest.mark.parametrize(
    "ids",
    [
        ("ep_1", "dlv_1", "rpl_1"),
        ("%00", "%00", "%00"),
        ("x" * 3000,) * 3,
        (FORGED[1], FORGED[0], FORGED[0]),
    ],
)
def test_what_is_no_id_is_not_there(ada, ids):
    endpoint, delivery, replay = ids
    mine = ada.endpoint().public_id
    for path in (f"/endpoints/{mine}/replays/{replay}", f"/deliveries/{delivery}"):
        ada.page(path, 404)
    ada.page(f"/endpoints/{endpoint}", 404)
    ada.post(f"/endpoints/{endpoint}/secret", 404, action="rotate")
    ada.post(f"/deliveries/{delivery}/resend", 404)


@pytest.mark.parametrize("action", ["", "send"])
def test_only_deliveries_of_the_owner_are_selected(ada, mallory, action):
    mine = ada.delivery(ada.endpoint())
    for foreign in (of_a_stranger(mallory), of_a_tenant(), FORGED):
        selected = [mine.public_id, foreign[1]]
        with nothing_changes():
            ada.post("/deliveries", 404, delivery=selected, action=action)


def test_filters_by_ids_of_others_show_nothing_of_them(ada, mallory):
    endpoint_id, delivery_id, _ = of_a_stranger(mallory)
    event_id = Delivery.objects.get(public_id=delivery_id).event.public_id
    ada.endpoint()
    for query in (
        f"/deliveries?status=all&endpoint={endpoint_id}",
        f"/deliveries?status=all&event_id={event_id}",
        "/changes",
        "",
    ):
        page = ada.page(query)
        assert delivery_id not in page
        assert f"/endpoints/{endpoint_id}" not in page
    ada.page(f"/changes?endpoint={endpoint_id}", 404)
    assert "There is no event with this id." in ada.page(f"/why?event_id={event_id}")


def test_each_page_is_there_for_its_owner(ada):
    for address in addresses(ids_of(ada.delivery(ada.endpoint()))):
        assert ada.browser.get(address).status_code in {200, 405}, address


def test_without_a_login_every_address_leads_there_and_does_nothing(ada):
    ids = ids_of(ada.delivery(ada.endpoint()))
    anyone = Client()
    with nothing_changes():
        for address in addresses(ids):
            seen, done = anyone.get(address), anyone.post(address)
            if seen.status_code != 405:
                assert seen["Location"] == f"/accounts/login?next={address}"
            if done.status_code != 405:
                assert done["Location"] == f"/accounts/login?next={BASE}"


def test_every_form_needs_its_token(ada):
    ids = ids_of(ada.delivery(ada.endpoint()))
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = ada.browser.cookies
    with nothing_changes():
        for address in addresses(ids):
            assert strict.post(address).status_code == 403, address


@pytest.mark.parametrize("method", ["put", "delete", "patch"])
def test_no_other_method_is_accepted(ada, method):
    address = f"{BASE}/endpoints/{ada.endpoint().public_id}"
    assert getattr(ada.browser, method)(address).status_code == 405
    assert Endpoint.objects.filter(deleted_at=None).count() == 1
