from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from config.operations import links
from tests.config.operations.test_health import no_database
from tests.factories import UserFactory
from tests.webhooks_core.engine import count_attempts, dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from webhooks_core import endpoints, profiles, tasks
from webhooks_core.models import Delivery, Endpoint, EndpointQueue
from webhooks_core.upkeep import stats

ELSEWHERE = {"REMOTE_ADDR": "203.0.113.9"}
STATE = "What was checked just now"


def page(client: Client, **headers) -> str:
    answer = client.get("/", **headers)
    assert answer.status_code == 200
    return answer.content.decode()


def hrefs(html: str) -> list[str]:
    return [
        path for path in re.findall(r'href="(/[^"]*)"', html) if "static" not in path
    ]


def test_it_links_to_every_page_and_no_link_is_dead(client, db):
    addresses = hrefs(page(client))
    assert {"/admin/", "/healthz", "/guides/chat", "/accounts/tokens"} <= set(addresses)
    codes = {
        path: client.get(path, HTTP_ACCEPT="text/html").status_code
        for path in addresses
    }
    assert set(codes.values()) <= {200, 302}, codes


def test_it_names_every_link_that_exists(client, db):
    html = page(client, **ELSEWHERE)
    assert [
        link.path
        for link in links.existing()
        if f"<code>{link.path}</code>" not in html
    ] == ["/"]


def test_a_link_that_only_fits_a_pattern_does_not_exist():
    assert not links._exists("/v1/webhooks/ep_1")
    assert not links._exists("/nowhere")


def test_other_clients_see_links_and_no_state(client, db):
    html = page(client, **ELSEWHERE)
    assert "Every address of this instance" in html
    assert STATE not in html
    assert "answers." not in html


@pytest.mark.parametrize("header", ["HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED"])
def test_a_forwarded_request_sees_no_state(client, db, header):
    assert STATE not in page(client, **{header: "127.0.0.1"})


def test_staff_sees_the_state_from_anywhere(client, db):
    client.force_login(UserFactory.create(superuser=True, username="root"))
    assert STATE in page(client, **ELSEWHERE)
    client.force_login(UserFactory.create(username="ada"))
    assert STATE not in page(client, **ELSEWHERE)


def test_the_commands_have_the_address_and_name_of_the_reader(client, db, settings):
    settings.BASE_URL = "http://127.0.0.1:8123"
    client.force_login(UserFactory.create(username="a<b>"))
    html = page(client)
    assert "curl -sS http://127.0.0.1:8123/v1/webhooks" in html
    assert "<b>" not in html.partition('class="cards"')[2].partition("</code>")[0]
    assert "create_personal_token a<b> " in unescape(html)


def test_without_a_database_the_page_still_opens(client, db):
    client.force_login(UserFactory.create(superuser=True, username="root"))
    with no_database():
        html = page(client)
        assert STATE not in page(client, **ELSEWHERE)
    assert "DATABASE_URL" in html


def test_the_state_shows_what_waits_and_what_fails(client, db, plain):
    tasks.sweep()
    healthy, failing, disabled = EndpointFactory.create_batch(3)
    publish_event()
    Endpoint.objects.filter(pk=failing.pk).update(consecutive_failures=2)
    Endpoint.objects.filter(pk=disabled.pk).update(status=Endpoint.Status.DISABLED)
    Delivery.objects.filter(endpoint=healthy).update(claimed_by=7)
    figures = stats.engine_stats()
    assert (figures.endpoints, figures.failing, figures.disabled) == (3, 1, 1)
    assert (figures.waiting, figures.in_flight, figures.dispatchers) == (2, 1, 0)
    html = page(client)
    assert re.search(r"<dd>\s*3\s*</dd>", html)
    line = "3 endpoints: 1 failing, 1 disabled. 2 deliveries wait."
    assert line in html.partition("</summary>")[0]


def test_the_line_of_the_state_is_the_first_fault(client, db):
    assert "No worker has reported yet" in page(client).partition("</summary>")[0]


def test_the_drawn_delivery_has_the_times_of_the_retry_policy(client, db):
    html = page(client).partition('class="delivery"')[2].partition("</figure>")[0]
    first, second = profiles.get("gateway").retry.delays[:2]
    times = re.findall(r"after ([\d.]+) s", html)
    assert [float(text) for text in times] == [0, first, first + second]


@pytest.mark.parametrize(("few", "waiting"), [(0, 5), (10_000, 7)])
def test_waiting_and_suspended_deliveries_are_counted_apart_and_to_a_bound(
    db, plain, monkeypatch, few, waiting
):
    monkeypatch.setattr(stats, "MAX_READ", few)
    live, paused = EndpointFactory.create_batch(2)
    publish_events(4)
    endpoints.pause(paused)
    one = Delivery.objects.filter(endpoint=live).order_by("pk")[:1]
    Delivery.objects.filter(pk__in=list(one.values_list("pk", flat=True))).update(
        claimed_by=7
    )
    EndpointQueue.objects.filter(pk=live.pk).update(leased_by=7)
    figures = stats.engine_stats()
    assert (figures.waiting, figures.suspended, figures.in_flight) == (7, 4, 1)
    monkeypatch.setattr(stats, "MAX_COUNTED", 3)
    figures = stats.engine_stats()
    assert (figures.waiting, figures.suspended, figures.in_flight) == (waiting, 3, 1)


@pytest.mark.django_db(transaction=True)
def test_the_attempts_of_the_last_hour_are_counted(client, plain, free_port):
    EndpointFactory.create(url=f"http://127.0.0.1:{free_port}/")
    publish_event()
    dispatch()
    count_attempts()
    html = page(client)
    for name in ("Attempts of the last hour", "Of these failed"):
        assert re.search(rf"<dt>{name}</dt>\s*<dd>\s*1\s*</dd>", html)


def test_the_number_of_queries_does_not_grow(
    client, db, plain, django_assert_max_num_queries
):
    tasks.sweep()
    EndpointFactory.create_batch(20)
    publish_event()
    with django_assert_max_num_queries(12):
        page(client)
