"""Chat in the admin: what usage looks like, and that it only shows."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.chat.metering import usage
from gateway.chat.models import (
    ModelPrice,
    UsageBucket,
    UsageDay,
    UsageRecord,
    UsageTotal,
)
from gateway.chat.tokens import Usage
from tests.gateway.chat.factories import LoggedRequestFactory, ModelPriceFactory
from tests.gateway.chat.metering.test_usage import ended
from webhooks_core.admin import base

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, 7, tzinfo=UTC)
RECORDS, DAYS = "/admin/gateway_chat/usagerecord/", "/admin/gateway_chat/usageday/"
LOGGED = "/admin/gateway_chat/loggedrequest/"


def cells(page) -> list[list[str]]:
    """Return the texts of a list's rows, as the admin computes them."""
    changes = page.context["cl"]
    shown = changes.model_admin
    return [
        [str(getattr(shown, name)(row)) for name in ("at", "outcome", "tokens", "took")]
        for row in changes.result_list
    ]


def test_a_record_tells_its_outcome_tokens_and_times(admin_client):
    usage.write(
        [
            ended(at=NOON, usage=Usage(9473, 2), duration_s=4.2, first_chunk_s=0.35),
            ended(at=NOON, error_status=500, usage=None, first_chunk_s=None),
            ended(at=NOON, ending="no finish reason", first_chunk_s=None),
        ]
    )
    page = admin_client.get(RECORDS)
    assert cells(page) == [
        ["20 Nov 12:00:07", "200, no finish reason", "9 + 2", "1.50"],
        ["20 Nov 12:00:07", "200, then 500", "? + ?", "1.50"],
        ["20 Nov 12:00:07", "200", "9,473 + 2", "0.35 of 4.20"],
    ]
    assert b"9,473 + 2" in page.content


def test_a_record_tells_its_estimates_and_the_parts_of_its_tokens(admin_client):
    usage.write([ended(at=NOON, usage=Usage(1234, 56, 78, 9, 11), estimated=True)])
    assert cells(admin_client.get(RECORDS))[0][2] == "about 1,234 + 56"
    record = UsageRecord.objects.get()
    page = admin_client.get(f"{RECORDS}{record.pk}/change/").content.decode()
    for label in ("Cached tokens:", "Cache write tokens:", "Reasoning tokens:"):
        assert label in page
    assert "Estimated:" in page


def test_prices_of_details_may_stay_empty(admin_client):
    form = {"model": "small", "prompt_price": "2.5", "completion_price": "10"}
    page = "/admin/gateway_chat/modelprice/add/"
    assert admin_client.post(page, form | {"reasoning_price": "-1"}).status_code == 200
    form |= {"cached_input_price": "1.25", "reasoning_price": ""}
    assert admin_client.post(page, form).status_code == 302
    price = ModelPrice.objects.get()
    assert price.cached_input_price == Decimal("1.25")
    assert (price.cache_write_price, price.reasoning_price) == (None, None)


def test_days_tell_what_was_spent(admin_client):
    ModelPriceFactory.create(model="small")
    usage.write(
        [ended(at=NOON, usage=Usage(1_000_000, 2)), ended(at=NOON, model="free")]
    )
    page = admin_client.get(DAYS).content.decode()
    assert "1,000,000 + 2" in page
    assert "1.000004<" in page
    assert '<td class="field-cost">0</td>' in page


def test_a_day_tells_its_failures_beside_its_requests(admin_client):
    usage.write([ended(at=NOON), ended(at=NOON, status=500)])
    assert ">2, 1 failed<" in admin_client.get(DAYS).content.decode()


@pytest.mark.parametrize(
    ("address", "model"), [(RECORDS, UsageRecord), (DAYS, UsageDay)]
)
def test_a_page_tells_costs_as_prices_and_times_as_elsewhere(
    admin_client, address, model
):
    ModelPriceFactory.create(model="small")
    usage.write([ended(at=NOON, usage=Usage(1_000_000, 2))])
    row = model.objects.get()
    text = admin_client.get(f"{address}{row.pk}/change/").content.decode()
    assert "1.000004<" in text
    assert "nano" not in text.lower()
    assert "2026-11-20" in text


def test_a_logged_request_shows_its_tools_as_names(admin_client):
    row = LoggedRequestFactory.create(tools='["tide","search"]')
    page = admin_client.get(f"{LOGGED}{row.pk}/change/").content.decode()
    assert ">tide, search<" in page
    bare = LoggedRequestFactory.create()
    page = admin_client.get(f"{LOGGED}{bare.pk}/change/").content.decode()
    assert ">[]<" not in page


@pytest.mark.parametrize("name", ["modelprice"])
def test_a_list_is_called_by_what_it_shows(admin_client, name):
    page = admin_client.get(f"/admin/gateway_chat/{name}/").content.decode()
    assert "<h1>Model " in page


def test_a_request_without_a_price_shows_no_cost(admin_client):
    usage.write([ended(at=NOON)])
    (row,) = admin_client.get(RECORDS).context["cl"].result_list
    assert admin_client.get(RECORDS).context["cl"].model_admin.cost(row) == "-"


@pytest.mark.parametrize("address", [RECORDS, DAYS])
def test_usage_is_neither_added_nor_changed_nor_deleted(admin_client, address):
    usage.write([ended(at=NOON)])
    record = UsageRecord.objects.get()
    assert admin_client.get(f"{address}add/").status_code == 403
    for page in ("change", "delete"):
        body = {"post": "yes", "tenant": "forged"}
        response = admin_client.post(f"{address}{record.pk}/{page}/", body)
        assert response.status_code in (302, 403, 404)
    assert UsageRecord.objects.get().tenant == "acme"


def test_things_are_called_by_what_they_are():
    assert str(UsageTotal(model="m", status=200)) == "m 200"
    assert str(UsageBucket(metric="duration", model="m", bucket=3)) == "duration m 3"
    assert str(UsageRecord(request_id="req-7")) == "req-7"
    assert str(ModelPrice(model="m")) == "m"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        *(
            ("model=free", 1),
            ("model=none", 0),
            ("model=%00", 0),
            ("o=-1&model=free", 1),
        ),
        *(("status=200", 2), ("status=404", 0), ("status=x", 0)),
        *(("streamed__exact=0", 2), ("q=req-", 2), ("o=3", 2)),
    ],
)
def test_records_are_filtered_searched_and_sorted(admin_client, query, shown):
    usage.write([ended(at=NOON, streamed=False), ended(model="free", streamed=False)])
    page = admin_client.get(f"{RECORDS}?{query}")
    assert len(page.context["cl"].result_list) == shown


def test_a_search_looks_at_the_newest_and_finds_whole_ids_and_tenants_of_all(
    admin_client, monkeypatch
):
    usage.write([ended(request_id="old-one"), ended(request_id="new-one")])

    def found(query: str) -> list[str]:
        rows = admin_client.get(f"{RECORDS}?{query}").context["cl"].result_list
        return [row.request_id for row in rows]

    monkeypatch.setattr(base, "SEARCHED_AT_MOST", 1)
    assert found("q=one") == ["new-one"]
    assert found("q=old-one") == ["old-one"]
    assert found("status=200") == ["new-one"]
    tenant = UsageRecord.objects.earliest("pk").tenant
    assert found(f"q={tenant}") == ["new-one", "old-one"]
