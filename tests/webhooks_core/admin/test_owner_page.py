"""Everything of an owner on one page, and the questions of somebody on call in the admin."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from tests.factories import UserFactory
from tests.webhooks_core.admin.looking import looker, page, queries_of
from tests.webhooks_core.factories import EndpointFactory, EventFactory, publish_event
from webhooks_core import endpoints
from webhooks_core.models import Endpoint
from webhooks_core.owners import changes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]

DASHBOARD = "/admin/webhooks_core/dispatcherlease/dashboard/"
LIST = "/admin/webhooks_core/endpoint/"


def address(owner: str, profile: str = "plain") -> str:
    return f"{LIST}owner/{profile}/{owner}/"


@pytest.fixture
def failing() -> Endpoint:
    """An endpoint among others, which fails since a quarter to two."""
    EndpointFactory.create_batch(3)
    target = EndpointFactory.create(
        owner="acme", url="http://127.0.0.1:9/hooks/acme?token=x"
    )
    publish_event(owner="acme")
    Endpoint.objects.filter(pk=target.pk).update(
        consecutive_failures=2,
        failing_since=timezone.now() - timedelta(days=1),
        failed_attempts=759,
        alike_failures=759,
        last_attempt_at=timezone.now(),
        last_outcome="http",
        last_error="HTTP 500",
        last_response='{"error": "out of ink"}',
    )
    target.refresh_from_db()
    return target


def since(target: Endpoint) -> str:
    return (
        f"Fails since {target.failing_since:%Y-%m-%d %H:%M:%S} UTC: 759 attempts, all"
    )


def test_the_dashboard_says_which_fails_since_when_why_and_whose(admin_client, failing):
    text = unescape(page(admin_client, DASHBOARD))
    verdict = text.partition('class="verdict"')[2].partition("</p>")[0]
    assert "Endpoints: 1 failing. The first one fails since" in verdict
    assert since(failing) in text
    assert 'HTTP 500 `{"error": "out of ink"}`' in text
    assert "127.0.0.1:9/hooks/acme<" in text
    assert address("acme") in text


def test_the_dashboard_says_that_all_is_well_or_late(admin_client, failing):
    Endpoint.objects.update(failing_since=None, consecutive_failures=0, alerted_at=None)
    assert "Every endpoint receives." in page(admin_client, DASHBOARD)
    failing.delivery_set.update(next_attempt_at=timezone.now() - timedelta(hours=1))
    assert "Deliveries are late." in page(admin_client, DASHBOARD)


@pytest.mark.parametrize("query", ["", "?health=failing", "?q=acme", "?q=hooks/acme"])
def test_the_list_says_it_too(admin_client, failing, query):
    text = unescape(page(admin_client, LIST + query))
    assert since(failing) in text


def test_everything_of_an_owner_is_on_one_page(admin_client, failing):
    endpoints.pause(failing, by=changes.operator("root"))
    text = unescape(page(admin_client, address("acme")))
    delivery = failing.delivery_set.get()
    for words in (
        *(failing.public_id, since(failing), delivery.public_id),
        *(delivery.event.public_id, "Paused", "root"),
    ):
        assert words in text
    assert "token=x" not in text


@pytest.mark.parametrize(
    ("profile", "names"),
    [("gateway", ["Keys", "Usage by day"]), ("recording", ["Personal tokens"])],
)
def test_the_page_leads_to_what_else_the_owner_has(admin_client, profile, names):
    owner = str(UserFactory.create(username="ada").pk)
    EventFactory.create(profile=profile, owner=owner)
    text = page(admin_client, address(owner, profile))
    for name in names:
        assert f">{name}</a>" in text


@pytest.mark.parametrize(
    "path",
    [address("nobody"), address("acme", "none"), address("a/b"), address("x" * 300)],
)
def test_an_unknown_owner_has_no_page(admin_client, failing, path):
    assert admin_client.get(path).status_code == 404


def test_the_page_is_for_those_who_may_see_endpoints(client, failing):
    looker(client, ["view_event"])
    assert client.get(address("acme")).status_code == 403


def test_the_number_of_queries_does_not_grow(admin_client):
    counts = []
    for number in (1, 15):
        EndpointFactory.create_batch(number, owner="acme")
        for _ in range(number):
            publish_event(owner="acme")
        counts.append(len(queries_of(admin_client, address("acme"))))
    assert counts[0] == counts[1]


def test_deleted_endpoints_are_hidden_until_they_are_asked_for(admin_client, failing):
    Endpoint.objects.filter(pk=failing.pk).update(deleted_at=timezone.now())
    assert failing.public_id not in page(admin_client, LIST)
    assert failing.public_id not in page(admin_client, f"{LIST}?q=acme")
    for query in ("?health=deleted", f"?q={failing.public_id}"):
        assert failing.public_id in page(admin_client, LIST + query)
