"""The endpoints' admin: how each is doing, at a glance and on its page."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.webhooks_core.admin.endpoint_pages import (
    LIST,
    attempts,
    change,
    operate,
    shown,
)
from tests.webhooks_core.admin.looking import NOWHERE, SCRIPT, page, queries_of
from tests.webhooks_core.engine import count_attempts, dispatch, only_delivery
from tests.webhooks_core.factories import (
    EndpointFactory,
    publish_event,
    publish_events,
)
from webhooks_core import endpoints
from webhooks_core.admin import endpoints as pages
from webhooks_core.models import Endpoint, EndpointSecret
from webhooks_core.owners.endpoint_state import Health

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


# ── Health ──────────────────────────────────────────────────────────────────────────

NOW = timezone.now()
STATES: dict[Health, dict[str, object]] = {
    Health.HEALTHY: {},
    Health.FAILING: {"consecutive_failures": 1},
    Health.HANGING: {"hanging_since": NOW, "consecutive_failures": 3},
    Health.PAUSED: {"paused_at": NOW, "hanging_since": NOW},
    Health.INACTIVE: {"active": False, "paused_at": NOW},
    Health.DISABLED: {"status": 2, "active": False},
    Health.DELETED: {"deleted_at": NOW, "status": 2},
}


def test_the_health_and_its_filter_agree(admin_client):
    targets = {}
    for number, (state, fields) in enumerate(STATES.items()):
        target = EndpointFactory.create(url=f"http://127.0.0.1:{number + 1}/")
        Endpoint.objects.filter(pk=target.pk).update(**fields)
        targets[state] = target
    for state, target in targets.items():
        target.refresh_from_db()
        assert Health.of(target) == state
        text = page(admin_client, f"{LIST}?health={state.name.lower()}")
        assert shown(text) == [target.public_id]
        assert f">{state.value}</span>" in text
    assert set(targets) == set(Health)


@pytest.mark.parametrize(
    "query", ["health=x", "health=%00", "product=%00", "owner=%00", "q=%00"]
)
def test_a_hostile_query_is_not_a_server_error(admin_client, query):
    assert admin_client.get(f"{LIST}?{query}").status_code == 200


# ── The list ────────────────────────────────────────────────────────────────────────


def test_a_page_costs_the_same_queries_however_long(admin_client):
    target, counts = EndpointFactory.create(), []
    for number in (2, pages.RECENT + 1):
        attempts(target, "ok " * number)
        publish_events(number)
        counts.append(len(queries_of(admin_client, change(target))))
    assert counts[0] == counts[1]


def test_a_row_shows_health_success_latency_and_failures_in_a_row(admin_client):
    with receiver(500) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
    attempts(target, "ok ok", ms=1234)
    count_attempts()
    text = page(admin_client, LIST)
    assert ">Failing</span>" in text
    assert "66.6 %" in text
    assert "≤ 2,500 ms" in text
    assert "1/3" in text
    assert 'aria-label="2 successful and 1 failed attempts in 24 h"' in text


def test_an_endpoint_is_found_by_id_owner_and_url(admin_client):
    target = EndpointFactory.create(url="http://127.0.0.1:8/one", owner="alice")
    EndpointFactory.create(url="http://127.0.0.1:8/two", owner="bob")
    for term in (target.public_id, "alic", "/one"):
        text = page(admin_client, f"{LIST}?q={term}")
        assert shown(text) == [target.public_id]


# ── The page ────────────────────────────────────────────────────────────────────────


def test_the_page_shows_the_state_of_the_endpoint(admin_client):
    with receiver(503) as server:
        target = EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
    count_attempts()
    text = page(admin_client, change(target))
    words = [server.url, "Failing", "1/3", "http 503", "0 %", only_delivery().public_id]
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("profile", "event_types", "words"),
    [
        ("recording", [], "none: it gets only test events"),
        ("gateway", [], "all: none is listed"),
        ("gateway", ["drift.detected", "eval.regression"], "drift.detected, eval"),
        ("gone", [], "none listed"),
    ],
)
def test_the_page_shows_which_events_the_endpoint_gets(
    admin_client, profile, event_types, words
):
    target = EndpointFactory.create(event_types=event_types)
    Endpoint.objects.update(profile=profile)
    assert words in page(admin_client, change(target))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": Endpoint.Status.DISABLED}, "Its owner sets another url,"),
        ({"active": False}, "Its owner has switched it off"),
        ({"paused_at": NOW}, "Resume it."),
    ],
)
def test_the_page_shows_how_to_deliver_again_and_how_much_waits(
    admin_client, fields, words
):
    target = EndpointFactory.create()
    publish_event()
    assert "To deliver again" not in page(admin_client, change(target))
    Endpoint.objects.update(**fields)
    text = page(admin_client, change(target))
    assert words in text
    (link,) = re.findall(r'<a href="([^"]+)">1 delivery waits</a>', text)
    assert only_delivery().public_id in page(admin_client, unescape(link))


def test_waiting_deliveries_are_counted_up_to_a_limit(admin_client, monkeypatch):
    target = EndpointFactory.create()
    publish_event()
    publish_event()
    endpoints.pause(target)
    assert ">2 deliveries wait</a>" in page(admin_client, change(target))
    monkeypatch.setattr(pages, "MAX_SUSPENDED", 2)
    assert ">2 or more deliveries wait</a>" in page(admin_client, change(target))


def test_input_from_outside_is_shown_escaped(admin_client):
    target = EndpointFactory.create(
        url=f"{NOWHERE}{SCRIPT}", owner=SCRIPT, description=SCRIPT
    )
    Endpoint.objects.update(event_types=[SCRIPT])
    endpoints.set_custom_headers(target, {"X-Key": "k-123456"})
    text = page(admin_client, change(target))
    assert SCRIPT not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 4
    assert "X-Key" in text
    assert "k-123456" not in text
    assert SCRIPT not in page(admin_client, LIST)


def test_the_secret_is_shown_nowhere(admin_client):
    target = EndpointFactory.create()
    secret = EndpointSecret.objects.get().value
    for address in (LIST, change(target), f"{LIST}{target.pk}/history/"):
        text = page(admin_client, address)
        assert secret.decrypt() not in text
        assert secret.ciphertext not in text


def test_unreadable_headers_and_an_unknown_product_are_not_server_errors(
    admin_client, settings
):
    target = EndpointFactory.create()
    endpoints.set_custom_headers(target, {"X-Key": "k"})
    Endpoint.objects.update(profile="gone")
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    assert "none of WEBHOOK_SECRET_KEYS" in page(admin_client, change(target))
    assert "no test event" in operate(admin_client, target, "send-test")
    page(admin_client, LIST)
