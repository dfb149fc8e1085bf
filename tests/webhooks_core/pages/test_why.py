"""Why an event reached an endpoint, or not: a line for each."""

from __future__ import annotations

import pytest

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints

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
