"""The list of endpoints, the form that adds one, and the page of each."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, nothing_changes, queries_of
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.pages.conftest import BASE, NOWHERE, TYPE
from webhooks_core.models import Delivery, Endpoint, EndpointSecret

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_endpoint_is_added_with_its_secret_and_tested(ada):
    assert "You have no endpoints yet." in ada.page()
    with receiver(204) as server:
        page = ada.post(url=server.url, event_types=[TYPE])
        dispatch()
    endpoint = Endpoint.objects.get()
    assert (endpoint.owner, endpoint.event_types) == (ada.owner, [TYPE])
    assert EndpointSecret.objects.get().value.decrypt() in page
    test = Delivery.objects.get()
    assert test.public_id in page
    assert "Delivered" in ada.page(f"/deliveries/{test.public_id}")
    assert server.requests[0].headers["X-Recording-Event"] == "webhook.ping"
    assert "/hook" in ada.page()


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        ({}, "Enter a URL."),
        ({"url": ""}, "Enter a URL."),
        ({"url": "ftp://example.com/"}, "https"),
        ({"url": "https://10.0.0.1/"}, "public"),
        ({"url": "https://a:b@93.184.216.34/"}, ""),
        ({"url": f"https://93.184.216.34/{'x' * 2048}"}, "2048"),
        ({"url": "https://93.184.216.34/\x00"}, ""),
        ({"url": NOWHERE, "event_types": ["no.such"]}, "no.such"),
    ],
)
def test_a_fault_of_the_form_is_named_and_adds_nothing(ada, form, fault):
    with nothing_changes():
        page = ada.post(status=400, **form)
    assert 'role="alert"' in page
    assert fault in page
    assert SCRIPT not in page
    assert not Endpoint.objects.exists()


def test_the_quota_is_said_before_and_after_the_form(ada):
    for _ in range(5):
        ada.endpoint()
    assert "All 5 endpoints are used" in ada.page()
    assert "at most 5 subscriptions" in ada.post(url=NOWHERE, status=429)
    assert Endpoint.objects.count() == 5


def test_tests_and_creations_count_towards_the_limits_of_the_api(ada, monkeypatch):
    rates = settings.RECORDING_RATES | {"create": "1/hour", "test": "2/hour"}
    monkeypatch.setattr(settings, "RECORDING_RATES", rates)
    ada.post(url=NOWHERE)
    assert "Too many new subscriptions" in ada.post(url=NOWHERE)
    address = f"/endpoints/{Endpoint.objects.get().public_id}/test"
    ada.post(address)
    assert "Too many test events" in ada.post(address)
    assert Delivery.objects.count() == 2


def test_a_new_secret_is_shown_although_no_test_may_be_sent(ada, monkeypatch):
    rates = settings.RECORDING_RATES | {"test": "1/hour"}
    monkeypatch.setattr(settings, "RECORDING_RATES", rates)
    ada.post(url=NOWHERE)
    page = ada.post(url=f"{NOWHERE}/second")
    assert "No test was sent to it" in page
    assert EndpointSecret.objects.latest("pk").value.decrypt() in page
    assert Delivery.objects.count() == 1


def test_settings_are_changed_and_types_that_are_not_offered_stay(ada):
    endpoint = ada.endpoint(event_types=[TYPE, "webhook.ping"])
    page = ada.post(f"/endpoints/{endpoint.public_id}", url=NOWHERE)
    assert "The settings were saved." in page
    endpoint.refresh_from_db()
    assert endpoint.event_types == ["webhook.ping"]


def test_another_url_asks_for_the_password_of_an_old_login_and_keeps_the_form(ada):
    endpoint, url = ada.endpoint(), f"{NOWHERE}/other"
    form = {"url": url, "event_types": [TYPE]}
    address = f"/endpoints/{endpoint.public_id}"
    make_old(ada)
    page = ada.post(address, **form)
    assert "Your login is older than ten minutes." in page
    endpoint.refresh_from_db()
    assert endpoint.url == NOWHERE
    after = confirmed(ada, page)
    assert url in after
    assert "The settings were saved." in ada.post(address, **form)
    endpoint.refresh_from_db()
    assert endpoint.url == url


def test_a_form_that_somebody_else_has_filled_is_not_restored(ada, mallory):
    theirs = mallory.endpoint()
    make_old(mallory)
    asked = mallory.browser.post(
        f"{BASE}/endpoints/{theirs.public_id}", {"url": f"{NOWHERE}/evil"}
    )
    kept = asked["Location"].partition("kept%3D")[2].partition("%23")[0]
    mine = ada.endpoint()
    for text in (kept, "x", "%00"):
        page = ada.page(f"/endpoints/{mine.public_id}?kept={text}")
        assert "evil" not in page


def make_old(person) -> None:
    """Let the login of a browser be older than ten minutes."""
    session = person.browser.session
    session["device"] |= {"created_at": "2026-01-01T00:00:00+00:00"}
    session.save()


def confirmed(person, page: str) -> str:
    """Give the password on the page that asks for it; return the page that follows."""
    start = page.index('name="next"')
    address = (
        page[start:].split('value="')[1].split('"', maxsplit=1)[0].replace("&amp;", "&")
    )
    form = {"password": "a-long-password", "next": address}
    response = person.browser.post("/accounts/confirm", form, follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


def test_a_disabled_endpoint_is_enabled_by_its_owner(ada):
    endpoint = ada.endpoint()
    address = f"/endpoints/{endpoint.public_id}"
    assert "it is not disabled" in ada.post(f"{address}/enable")
    Endpoint.objects.update(status=Endpoint.Status.DISABLED, consecutive_failures=20)
    page = ada.page(address)
    assert "Enable" in page
    assert "Send a test" not in page
    assert "Nothing was sent: the endpoint is disabled" in ada.post(f"{address}/test")
    assert "Enabled: what waits is sent now." in ada.post(f"{address}/enable")
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.consecutive_failures) == (1, 0)


def test_an_endpoint_is_deleted(ada):
    endpoint = ada.endpoint()
    page = ada.post(f"/endpoints/{endpoint.public_id}/delete")
    assert "The endpoint was deleted." in page
    endpoint.refresh_from_db()
    assert endpoint.deleted_at is not None


def test_what_the_configuration_declares_is_not_changed_here(ada):
    endpoint = ada.endpoint()
    Endpoint.objects.update(static_key="declared", slot=None)
    address = f"/endpoints/{endpoint.public_id}"
    with nothing_changes():
        for path in (address, f"{address}/delete"):
            page = ada.post(path, url=NOWHERE)
            assert "the operator&#x27;s configuration declares this endpoint" in page
        page = ada.post(f"{address}/secret", action="rotate")
        assert "the operator&#x27;s configuration declares this endpoint" in page


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_queries_is_the_same_for_any_number_of_endpoints(ada, count):
    made = [ada.endpoint() for _ in range(count)]
    for _ in range(count):
        ada.delivery(made[0])
    assert len(queries_of(ada.browser, BASE)) == 5
    address = f"{BASE}/endpoints/{made[0].public_id}"
    assert len(queries_of(ada.browser, address)) == 8


def test_an_account_that_is_switched_off_meanwhile_adds_nothing(ada):
    ada.page()
    ada.account.is_active = False
    ada.account.save()
    response = ada.browser.post(BASE, {"url": NOWHERE})
    assert response.status_code == 302
    assert not Endpoint.objects.exists()


def test_what_its_receiver_switched_off_is_said_on_top_and_enabled_here(ada):
    endpoint = ada.endpoint()
    assert Endpoint.objects.refuse(pk=endpoint.pk, now=timezone.now())
    assert not Endpoint.objects.refuse(pk=endpoint.pk, now=timezone.now())
    assert ada.page().count("Switched off by its receiver since ") == 1
    page = f"/endpoints/{endpoint.public_id}"
    assert "the header `webhook-delivery: disable`" in ada.page(page)
    assert "Enabled: what waits is sent now." in ada.post(f"{page}/enable")
    endpoint.refresh_from_db()
    assert endpoint.is_receiving
    assert endpoint.refused_at is None
    assert "Enable</button>" not in ada.page(page)


def test_there_is_no_filter_where_the_product_has_none(ada):
    endpoint, event = ada.endpoint(), ada.publish()
    path = f"/endpoints/{endpoint.public_id}"
    assert "filter" not in ada.page(path).lower().replace("filters", "")
    form = {"url": endpoint.url, "filter": "{}", "event": event.public_id}
    with nothing_changes():
        ada.post(f"{path}/filter", 404, **form)
