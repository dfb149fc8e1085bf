"""The list of deliveries: its filters, older ones, and resending several."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, nothing_changes, queries_of
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.pages.conftest import BASE, TYPE
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Event
from webhooks_core.owners import replays

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/deliveries"


@pytest.fixture
def deliveries(ada):
    """One of each state, of one endpoint each."""
    with receiver(204) as good, receiver(500) as bad:
        delivered = ada.attempted(ada.endpoint(good.url), event_types=[TYPE])
        endpoints.delete(delivered.endpoint)
    kept = ada.endpoint(bad.url)
    with receiver(204) as good:
        kept = endpoints.update(kept, url=good.url)
        delivered = ada.attempted(kept)
    failed = ada.delivery(kept)
    replays.cancel(failed, by=ada.by)
    waiting = ada.delivery(kept)
    return {"delivered": delivered, "failed": failed, "waiting": waiting}


def listed(person, query: str = "") -> list[str]:
    """Return the ids of the deliveries that a list shows, in its order."""
    page = person.page(f"{PATH}{query}")
    parts = page.split(f'href="{BASE}/deliveries/')[1:]
    return [part.split('"', maxsplit=1)[0] for part in parts]


def test_it_begins_with_what_failed_and_has_not_arrived(ada, deliveries):
    assert listed(ada) == [deliveries["failed"].public_id]
    assert "cancelled by the owner" in ada.page(PATH)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?status=failed", ["failed"]),
        ("?status=pending", ["waiting"]),
        ("?status=open", ["waiting", "failed"]),
        ("?status=delivered", ["delivered"]),
        ("?status=all", ["waiting", "failed", "delivered"]),
        ("?status=no.such", ["failed"]),
        ("?status=all&answer=2xx", ["delivered"]),
        ("?status=all&answer=5xx", []),
        ("?status=all&type=summary.completed", ["waiting", "failed", "delivered"]),
        ("?status=all&type=no.such", ["waiting", "failed", "delivered"]),
        ("?status=all&hours=1", ["waiting", "failed", "delivered"]),
        ("?status=all&endpoint=ep_x", ["waiting", "failed", "delivered"]),
        ("?status=all&cursor=nonsense!", ["waiting", "failed", "delivered"]),
        ("?event_id=evt_x", []),
        ("?event_id=%00", []),
    ],
)
def test_each_filter_narrows_and_an_unknown_one_is_absent(
    ada, deliveries, query, names
):
    assert listed(ada, query) == [deliveries[name].public_id for name in names]


def test_an_event_id_finds_its_deliveries_and_leads_to_the_reasons(ada, deliveries):
    event_id = deliveries["delivered"].event.public_id
    assert listed(ada, f"?event_id={event_id}") == [deliveries["delivered"].public_id]
    assert f"{BASE}/why?event_id={event_id}" in ada.page(f"{PATH}?event_id={event_id}")


def test_events_before_the_chosen_time_are_left_out(ada, deliveries):
    Event.objects.filter(pk=deliveries["failed"].event_id).update(
        created_at=timezone.now() - timedelta(hours=2)
    )
    assert listed(ada, "?hours=1") == []
    assert listed(ada, "?hours=24") == [deliveries["failed"].public_id]


def test_older_ones_follow_without_a_gap(ada):
    endpoint = ada.endpoint()
    made = [ada.delivery(endpoint).public_id for _ in range(30)]
    first = listed(ada, "?status=all")
    page = ada.page(f"{PATH}?status=all")
    query = page.split('">Older deliveries')[0].rpartition('href="')[2]
    second = listed(ada, query.replace("&amp;", "&"))
    assert first + second == made[::-1]


def test_several_are_resent_after_a_question_that_counts_what_arrived(ada, deliveries):
    selected = [deliveries["failed"].public_id, deliveries["delivered"].public_id]
    with nothing_changes():
        question = ada.post(PATH, delivery=selected)
    assert "Resend 2 deliveries?" in question
    assert "1 of these events has arrived already." in question
    page = ada.post(PATH, delivery=selected, action="send")
    assert "2 of 2 are sent again." in page
    assert Delivery.objects.filter(trigger="manual").count() == 2


def test_a_failed_one_that_arrived_later_says_so(ada):
    with receiver(500, 204) as server:
        failed = ada.attempted(ada.endpoint(server.url))
        replays.cancel(failed, by=ada.by)
        replays.resend(failed, by=ada.by)
        dispatch()
    assert listed(ada) == []
    assert "Failed, resent: delivered" in ada.page(f"{PATH}?status=failed")


@pytest.mark.parametrize("count", [0, 101])
def test_none_or_too_many_are_not_resent(ada, deliveries, count):
    selected = [deliveries["failed"].public_id] * count
    with nothing_changes():
        page = ada.post(PATH, delivery=selected, action="send")
    assert "Select 1 to 100 deliveries." in page


def test_to_a_disabled_endpoint_nothing_is_resent(ada, deliveries):
    failed = deliveries["failed"]
    endpoints.update(failed.endpoint, active=False)
    page = ada.post(PATH, delivery=[failed.public_id], action="send")
    assert "Nothing was sent: the endpoint is disabled or inactive." in page


def test_hostile_filters_are_escaped(ada):
    ada.endpoint()
    page = ada.page(f"{PATH}?event_id={SCRIPT}&type={SCRIPT}&status={SCRIPT}")
    assert SCRIPT not in page


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_queries_is_the_same_for_any_number_of_rows(ada, count):
    endpoint = ada.endpoint()
    for _ in range(count):
        replays.cancel(ada.delivery(endpoint), by=ada.by)
    assert len(queries_of(ada.browser, f"{BASE}{PATH}")) == 7


def test_without_rows_it_says_what_is_missing(ada):
    assert "You have no endpoints yet." in ada.page(PATH)
    ada.endpoint()
    assert "Nothing failed that has not arrived since." in ada.page(PATH)
    assert "There is no such delivery." in ada.page(f"{PATH}?status=all")
