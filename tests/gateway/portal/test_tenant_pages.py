"""What a tenant sees beside webhooks: its usage, its budgets, the request log, and its keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from gateway import configuration, keys
from gateway.chat.metering import usage
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.budget_stores import add_to_rows
from gateway.chat.metering.windows import start_of
from gateway.chat.models import LoggedRequest
from gateway.configuration.shapes import BudgetEntry, Configuration
from gateway.models import GatewayKey
from tests.gateway.chat.factories import LoggedRequestFactory, ModelPriceFactory
from tests.gateway.chat.metering.test_usage import NOON, ended
from tests.gateway.factories import GatewayKeyFactory
from tests.gateway.portal.conftest import new_link, visit
from tests.webhooks_core.admin.looking import nothing_changes

pytestmark = pytest.mark.django_db
TODAY = "11-20"
BUDGET = BudgetEntry("monthly", "cost", "month", 2, per=("key",))


def fill(tenant: str) -> tuple[GatewayKey, LoggedRequest]:
    """Give a tenant a key with a budget, usage of a week, and logged requests."""
    now = datetime.now(UTC)
    key = GatewayKeyFactory.create(tenant=tenant, name=f"robot of {tenant}")
    ModelPriceFactory.create(model=f"{tenant}-model")
    fields = {"tenant": tenant, "model": f"{tenant}-model", "key_id": key.pk}
    usage.write(
        [ended(at=now - timedelta(days=days), **fields) for days in (0, 0, 2, 5)]
        + [ended(at=now, status=500, usage=None, **fields)]
    )
    start = int(start_of("month", now).timestamp())
    subject = f"key {tenant}/ada#{key.pk}"
    add_to_rows({CounterKey(BUDGET.name, subject, start, tenant): 15 * 10**8})
    for status in (200, 499, 500):
        row = LoggedRequestFactory.create(
            tenant=tenant,
            model=f"{tenant}-model",
            status=status,
            excerpt=f"The plans of {tenant}",
            prompt=f'{{"messages":[{{"role":"user","content":"The plans of {tenant}"}}]}}',
            key_id=key.pk,
            error=f"a private error of {tenant}" if status == 500 else "",
        )
    return key, row


@pytest.fixture(autouse=True)
def _at_noon():
    with time_machine.travel(NOON):
        yield


@pytest.fixture
def filled(monkeypatch) -> tuple[GatewayKey, LoggedRequest]:
    """What is acme's; globex has the same."""
    budgets = Configuration(budgets=(BUDGET,))
    monkeypatch.setattr(configuration, "current", lambda: budgets)
    fill("globex")
    return fill("acme")


def test_usage_is_drawn_by_day_and_summed(filled, grace):
    page = grace.get("/usage")
    assert "Requests by day in 30 days: 5, 1 failed" in page
    assert "Tokens by day in 30 days: 44" in page
    assert "Cost by day in 30 days: 0.000052" in page
    assert page.count('<rect class="ok"') == 3 + 3 + 3
    assert f"{TODAY} UTC: 3, 1 failed" in page
    assert "<bdi>acme-model</bdi>" in page
    assert "gw_key_abcd… robot of acme" in grace.get("/usage?by=key&days=7")
    assert "<bdi>ada</bdi>" in grace.get("/usage?by=principal&days=90")


def test_what_is_left_of_budgets_is_shown_with_its_end(filled, grace):
    key, _ = filled
    for page in (grace.get("/usage"), grace.get("/keys")):
        assert f"key acme/ada#{key.pk}" in page
        text = "Cost of this month: 1.5 of 2 used (75 %), 0.5 left."
        assert text in page
        assert "globex" not in page


def test_without_requests_the_pages_say_so(grace):
    assert "Nothing was requested in these days." in grace.get("/usage")
    assert "No budget of yours has counted a request" in grace.get("/usage")
    assert "The log has no such request." in grace.get("/requests")
    assert "There is no key." in grace.get("/keys")


def test_requests_are_listed_searched_and_shown(filled, grace):
    key, row = filled
    page = grace.get("/requests")
    assert page.count('<li class="row">') == 3
    assert page.count("The plans of acme") == 3
    for query, count in (
        ("status=499", 1),
        ("model=acme-model&hours=24", 3),
        ("text=plans+of+acme&status=500", 1),
        ("text=absent", 0),
        (f"key={key.pk}", 3),
        ("key=999999999", 0),
    ):
        found = grace.get(f"/requests?{query}").count('<li class="row">')
        assert (query, found) == (query, count)
    page = grace.get(f"/requests/{row.public_id}")
    assert "The plans of acme" in page
    assert "a private error of acme" in page
    assert "Hello" in page


def test_older_requests_are_behind_the_link(grace):
    for _ in range(26):
        LoggedRequestFactory.create()
    page = grace.get("/requests?hours=24")
    assert page.count('<li class="row">') == 25
    query = page.split('href="?hours=24&amp;cursor=')[1].split('"')[0]
    page = grace.get(f"/requests?hours=24&cursor={query}")
    assert page.count('<li class="row">') == 1
    assert "Older requests" not in page


@pytest.mark.parametrize(
    "query", ["status=x", "key=-1", "text=%00", f"text={'x' * 300}", "model=a%00"]
)
def test_a_malformed_search_says_what_is_wrong(filled, grace, query):
    page = grace.get(f"/requests?{query}", 400)
    assert 'role="alert"' in page
    assert '<li class="row">' not in page


def test_what_is_another_tenant_s_is_nowhere(filled, grace):
    theirs = LoggedRequest.objects.filter(tenant="globex")
    key = GatewayKey.objects.get(tenant="globex")
    for row in theirs:
        grace.get(f"/requests/{row.public_id}", 404)
        grace.get(f"/requests/{row.request_id}", 404)
    pages = ("", "?by=key", "?by=principal")
    paths = [f"/usage{query}" for query in pages]
    for path in (*paths, "/keys", "/requests"):
        assert "globex" not in grace.get(path), path
    for query in (f"key={key.pk}", "model=globex-model", "text=globex"):
        assert "The log has no such request." in grace.get(f"/requests?{query}")


def test_without_the_capability_no_text_of_a_request_is_shown(filled):
    viewer = visit(new_link(capabilities=["view"]))
    _, row = filled
    for path in ("/requests", f"/requests/{row.public_id}"):
        page = viewer.get(path)
        for text in ("plans of acme", "a private error", "Hello"):
            assert text not in page, path
    page = viewer.get("/requests?text=plans", 400)
    assert "does not allow to search" in page
    assert "Text in prompt or answer" not in page


def test_no_key_can_be_read_or_changed(filled, grace):
    key, _ = filled
    page = grace.get("/keys")
    assert key.digest not in page
    assert "<code>gw_key_abcd…</code>" in page
    with nothing_changes():
        assert grace.send("/keys", key=key.pk).status_code == 405


@pytest.mark.parametrize(
    ("scopes", "tabs"),
    [
        (["webhooks"], set()),
        (["webhooks", "usage"], {"/usage", "/keys"}),
        (["webhooks", "requests"], {"/requests"}),
        (None, {"/usage", "/keys", "/requests"}),
    ],
)
def test_a_link_shows_no_more_than_its_maker_may_read(filled, scopes, tabs):
    _, row = filled
    maker = keys.create(tenant="acme", principal="ada", scopes=scopes)
    person = visit(new_link(key_id=maker.key.pk))
    start = person.get()
    for path in ("/usage", "/keys", "/requests"):
        assert (f'href="/portal{path}"' in start) is (path in tabs)
        person.get(path, 200 if path in tabs else 403)
    person.get(f"/requests/{row.public_id}", 200 if "/requests" in tabs else 403)


def test_a_link_of_a_key_with_models_shows_their_requests_alone(filled):
    _, row = filled
    maker = keys.create(tenant="acme", principal="ada", models=["another"])
    person = visit(new_link(key_id=maker.key.pk))
    assert "The log has no such request." in person.get("/requests")
    person.get(f"/requests/{row.public_id}", 404)
