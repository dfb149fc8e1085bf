"""Requests and prices in the admin."""

from decimal import Decimal

import pytest

from gateway.chat.metering import usage
from gateway.chat.models import ModelPrice, RequestRecord
from gateway.chat.tokens import Usage
from tests.gateway.chat.factories import ModelPriceFactory, RequestRecordFactory, ended

pytestmark = pytest.mark.django_db
REQUESTS = "/admin/gateway_chat/requestrecord/"


def test_a_request_shows_its_outcome_cost_prompt_and_answer(admin_client):
    ModelPriceFactory.create(model="small")
    usage.write(
        [
            ended(usage=Usage(9473, 2)),
            ended(error_status=500, usage=None, ending="no finish reason"),
            ended(model="", status=429, usage=None, first_chunk_s=None),
        ]
    )
    RequestRecordFactory.create(error="x<b>", answer='["\\ud83c Grüße"]')
    page = admin_client.get(REQUESTS).content.decode()
    for text in ("200, then 500, no finish reason", "429, refused", "0.009477"):
        assert text in page
    pages = [
        admin_client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
        for row in RequestRecord.objects.order_by("pk")
    ]
    assert pages[0].count("not kept") == 2
    for text in ("? Grüße", "Say hello", "x&lt;b&gt;"):
        assert text in pages[-1]


def test_requests_are_neither_added_nor_changed_nor_deleted(admin_client):
    usage.write([ended()])
    record = RequestRecord.objects.get()
    assert admin_client.get(f"{REQUESTS}add/").status_code == 403
    for page in ("change", "delete"):
        body = {"post": "yes", "tenant": "forged"}
        response = admin_client.post(f"{REQUESTS}{record.pk}/{page}/", body)
        assert response.status_code == 403
    assert RequestRecord.objects.get().tenant == "acme"


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("outcome=refused", 1),
        ("outcome=failed", 1),
        ("q=req-7", 4),
        ("q=acme", 4),
        ("q=req-", 0),
    ],
)
def test_requests_are_filtered_and_searched(admin_client, query, shown):
    usage.write(
        [ended(), ended(model="free"), ended(model="", status=404), ended(status=500)]
    )
    page = admin_client.get(f"{REQUESTS}?{query}")
    assert len(page.context["cl"].result_list) == shown


def test_a_list_reads_no_texts(admin_client, django_assert_max_num_queries):
    RequestRecordFactory.create_batch(5)
    with django_assert_max_num_queries(10) as queries:
        admin_client.get(REQUESTS)
    statements = [query["sql"] for query in queries]
    assert not [sql for sql in statements if '"prompt"' in sql and "SELECT" in sql]


def test_a_price_may_have_parts_that_are_empty(admin_client):
    page = "/admin/gateway_chat/modelprice/add/"
    form = {"model": "small", "prompt_price": "2.5", "completion_price": "10"}
    form |= {
        "cached_input_price": "1.25",
        "cache_write_price": "",
    }
    assert admin_client.post(page, form).status_code == 302
    price = ModelPrice.objects.get()
    assert price.cached_input_price == Decimal("1.25")
    assert price.cache_write_price is None
