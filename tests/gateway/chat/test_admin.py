"""Requests and prices in the admin."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from gateway.chat.metering import usage
from gateway.chat.models import ModelPrice, RequestRecord
from gateway.chat.tokens import Usage
from tests.gateway.chat.factories import ModelPriceFactory, RequestRecordFactory, ended

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 20, 12, 0, 7, tzinfo=UTC)
REQUESTS = "/admin/gateway_chat/requestrecord/"


def cells(page, *names: str) -> list[list[str]]:
    """Return the texts of a list's rows, as the admin computes them."""
    changes = page.context["cl"]
    shown = changes.model_admin
    return [
        [str(getattr(shown, name)(row)) for name in names]
        for row in changes.result_list
    ]


def test_a_request_tells_its_outcome_tokens_cost_and_times(admin_client):
    ModelPriceFactory.create(model="small")
    usage.write(
        [
            ended(
                ended_at=NOON, usage=Usage(9473, 2), duration_s=4.2, first_chunk_s=0.35
            ),
            ended(ended_at=NOON, error_status=500, usage=None, first_chunk_s=None),
            ended(
                ended_at=NOON,
                ending="no finish reason",
                is_estimated=True,
                model="other",
            ),
            ended(ended_at=NOON, model="", status=429, usage=None, first_chunk_s=None),
        ]
    )
    page = admin_client.get(REQUESTS)
    names = ("at", "outcome", "shown_model", "tokens", "cost", "took")
    at = "20 Nov 12:00:07"
    assert cells(page, *names) == [
        [at, "429, refused", "small", "? + ?", "-", "1.50"],
        [at, "200, no finish reason", "small, answered by other", "about 9 + 2", "-", "0.02 of 1.50"],
        [at, "200, then 500", "small", "? + ?", "-", "1.50"],
        [at, "200", "small", "9,473 + 2", "0.009477", "0.35 of 4.20"],
    ]  # fmt: skip


def test_a_request_shows_its_prompt_and_answer_as_text(admin_client):
    row = RequestRecordFactory.create(tools='["tide","search"]', error="x<b>")
    page = admin_client.get(f"{REQUESTS}{row.pk}/change/").content.decode()
    for text in (">Hello</pre>", ">user: Say hello</pre>", "tide, search"):
        assert text in page
    assert "x&lt;b&gt;" in page
    texts = dict.fromkeys(("prompt", "answer", "tools"))
    bare = RequestRecordFactory.create(**texts)
    page = admin_client.get(f"{REQUESTS}{bare.pk}/change/").content.decode()
    assert page.count("not kept") == 2


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
        *(("outcome=refused", 1), ("outcome=failed", 1), ("outcome=answered", 2)),
        *(("q=req-7", 4), ("q=acme", 4), ("q=req-", 0)),
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
        "reasoning_price": "",
    }
    assert admin_client.post(page, form).status_code == 302
    price = ModelPrice.objects.get()
    assert price.cached_input_price == Decimal("1.25")
    assert (price.cache_write_price, price.reasoning_price) == (None, None)
