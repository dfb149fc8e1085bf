"""Why an event reached an endpoint, or not: a line for each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, queries_of
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.pages.conftest import BASE, Person
from webhooks_core import endpoints, profiles
from webhooks_core.models import Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_endpoint_has_its_own_reason(ada):
    with receiver(204) as good, receiver(500) as bad:
        ada.endpoint(f"{good.url}/good")
        ada.endpoint(f"{bad.url}/bad")
        ada.endpoint(f"{good.url}/deaf", event_types=[])
        off = ada.endpoint(f"{good.url}/off")
        endpoints.update(off, active=False)
        event = ada.publish()
        dispatch()
    page = ada.page(f"/why?event_id={event.public_id}")
    lines = {part.split("<", maxsplit=1)[0]: part for part in page.split("/hook")[1:]}
    assert "Delivered at" in lines["/good"]
    assert "1 attempt failed, HTTP 500" in lines["/bad"]
    assert "The endpoint does not receive summary.completed." in lines["/deaf"]
    assert "The endpoint was inactive when it was published" in lines["/off"]
    assert "Replay what was not sent" in lines["/off"]


@pytest.mark.parametrize("event_id", ["evt_x", f"evt_{'0' * 26}", "%00", "x" * 500])
def test_an_unknown_id_is_said_to_be_unknown(ada, event_id):
    ada.endpoint()
    page = ada.page(f"/why?event_id={event_id}")
    assert "There is no event with this id." in page or "it was removed" in page


def test_without_an_id_or_endpoints_it_says_what_it_needs(ada):
    assert "You have no endpoints yet" in ada.page("/why")
    ada.endpoint()
    assert "The id is in the body of each event" in ada.page("/why")
    assert SCRIPT not in ada.page(f"/why?event_id={SCRIPT}")


def every_kind(ada: Person, url: str) -> Event:
    """Make endpoints of each state; return an event that was published after it."""
    ada.endpoint(f"{url}/good")
    ada.endpoint(f"{url}/other")
    endpoints.pause(ada.endpoint(f"{url}/paused"))
    endpoints.pause(ada.endpoint(f"{url}/paused-too"))
    ada.endpoint(f"{url}/deaf", event_types=[])
    ada.endpoint(f"{url}/filtered", filter={"type": "none"})
    endpoints.update(ada.endpoint(f"{url}/off"), active=False)
    first, event = ada.publish(), ada.publish()
    assert first.pk < event.pk
    dispatch()
    return event


def test_many_endpoints_cost_no_more_queries(ada, monkeypatch):
    roomy = replace(profiles.get("recording"), quota=20)
    monkeypatch.setitem(profiles.PROFILES, "recording", roomy)
    with receiver(204) as server:
        event = every_kind(ada, server.url)
        few = queries_of(ada.browser, f"{BASE}/why?event_id={event.public_id}")
        event = every_kind(ada, server.url)
        address = f"{BASE}/why?event_id={event.public_id}"
        many = queries_of(ada.browser, address)
    assert Endpoint.objects.count() == 14
    assert len(many) == len(few)
    page = ada.browser.get(address).content.decode()
    for text, count in {
        "Delivered at": 4,
        "Waits: the endpoint is paused": 4,
        "does not receive": 2,
        "does not match": 2,
        "was inactive": 2,
    }.items():
        assert page.count(text) == count, text
