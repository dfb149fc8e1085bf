"""Usage: what is written of requests, summed for tenants and metrics, and priced."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone
from django.utils.module_loading import import_string
from django_q.models import Schedule

from gateway.chat.apis.messages.operation import MESSAGES
from gateway.chat.context import ABSENT, ChatContext
from gateway.chat.metering import definitions, usage
from gateway.chat.metering.definitions import listed
from gateway.chat.metering.usage import cost_nano
from gateway.chat.models import (
    RequestRecord,
    UsageBucket,
    UsageDay,
    UsageTotal,
)
from gateway.chat.request import ModelRequest
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import ModelEntry, Target
from gateway.identity import Caller
from tests.clock import travel
from tests.gateway.chat.factories import (
    NOON,
    ModelPriceFactory,
    RequestRecordFactory,
    ended,
)

pytestmark = pytest.mark.django_db


@pytest.mark.spec("gateway", "Token usage is recorded as metrics in the background")
def test_what_ended_is_a_record_with_all_that_is_known():
    usage.write([ended(), ended(status=499, usage=None, first_chunk_s=None)])

    first, second = RequestRecord.objects.order_by("pk")
    assert (first.tenant, first.principal, first.model) == ("acme", "ada", "small")
    assert (first.prompt_tokens, first.completion_tokens) == (9, 2)
    assert (first.first_chunk_ms, first.duration_ms) == (20, 1500)
    assert (first.status, first.streamed, first.request_id) == (200, True, "req-7")
    left = second.status, second.prompt_tokens, second.first_chunk_ms
    assert left == (499, None, None)


def test_days_grow_by_what_is_added():
    usage.write([ended(), ended(principal="bob"), ended(status=500)])
    usage.write([ended(), ended(ended_at=NOON + timedelta(days=1))])

    rows = UsageDay.objects.order_by("day", "principal").values_list(
        "day", "principal", "requests", "failures", "prompt_tokens", "completion_tokens"
    )
    today, tomorrow = NOON.date(), NOON.date() + timedelta(days=1)
    assert list(rows) == [
        (today, "ada", 3, 1, 27, 6),
        (today, "bob", 1, 0, 9, 2),
        (tomorrow, "ada", 1, 0, 9, 2),
    ]


def test_metrics_have_totals_by_status_and_each_duration_once():
    usage.write(
        [
            ended(duration_s=0.01),
            ended(duration_s=0.011, error_status=500),  # a stream that broke
            ended(duration_s=999, status=499),
        ]
    )
    totals = UsageTotal.objects.order_by("status").values_list("status", "requests")
    assert list(totals) == [(200, 1), (499, 1), (500, 1)]
    rows = UsageBucket.objects.filter(metric=usage.DURATION).order_by("bucket")
    assert [(row.bucket, row.count) for row in rows] == [(0, 1), (1, 1), (13, 1)]
    assert sum(row.total for row in rows) == pytest.approx(999.021)


def test_costs_are_exact_to_a_billionth():
    ModelPriceFactory.create(
        model="small", prompt_price=Decimal("0.15"), completion_price=Decimal("0.6")
    )
    usage.write([ended(), ended(usage=None), ended(model="other")])
    costs = RequestRecord.objects.order_by("pk").values_list("cost_nano", flat=True)
    assert list(costs) == [9 * 150 + 2 * 600, None, None]
    assert UsageDay.objects.get(model="small").cost_nano == 2550


PRICES = {"prompt_price": Decimal("2.5"), "completion_price": Decimal(10)}
DETAILS = {
    "cached_input_price": Decimal("1.25"),
    "cache_write_price": Decimal("3.125"),
}


@pytest.mark.parametrize(
    ("_case", "prices", "used", "nano"),
    [
        ("no details", DETAILS, (100, 50), 100 * 2500 + 50 * 10_000),
        ("each at its own price", DETAILS, (100, 50, 60, 10, 40), 30 * 2500 + 60 * 1250 + 10 * 3125 + 50 * 10_000),
        ("without prices of their own", {}, (100, 50, 60, 10, 40), 100 * 2500 + 50 * 10_000),
        ("free of charge", dict.fromkeys(DETAILS, Decimal(0)), (100, 0, 100), 0),
    ],
)  # fmt: skip
def test_details_of_tokens_have_prices_of_their_own(_case, prices, used, nano):
    ModelPriceFactory.create(model="small", **PRICES, **prices)
    usage.write([ended(usage=Usage(*used))])
    record = RequestRecord.objects.get()
    assert record.cost_nano == nano
    counts = record.cached_tokens, record.cache_write_tokens, record.reasoning_tokens
    assert counts == (*used[2:5], 0, 0, 0)[:3]
    assert UsageTotal.objects.get().cost_nano == nano


def test_estimates_are_marked_and_counted():
    usage.write(
        [ended(), ended(is_estimated=True), ended(is_estimated=True, status=499)]
    )
    usage.write([ended(is_estimated=True)])
    marks = RequestRecord.objects.order_by("pk").values_list("estimated", flat=True)
    assert list(marks) == [False, True, True, True]
    assert UsageDay.objects.get().estimated_requests == 3


def test_nothing_is_written_when_a_part_fails(monkeypatch):
    def fail(*_: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(usage.SumTable, "add", fail)
    with pytest.raises(OperationalError):
        usage.write([ended()])
    assert not RequestRecord.objects.exists()


def test_the_number_of_statements_does_not_grow_with_the_batch(
    django_assert_max_num_queries,
):
    many = [ended(model=f"m{number % 3}") for number in range(200)]
    with django_assert_max_num_queries(12):
        usage.write(many)


def test_a_request_that_was_refused_is_recorded_and_counts_in_no_sum():
    caller = Caller("acme", "ada", 7)
    wanted, error = ModelRequest("absent\0", False, {}), "There is no such model."
    refused = ChatContext(caller, ABSENT, wanted, "req-7", MESSAGES, failure=error)
    refused.end(404)
    usage.write([refused])
    record = RequestRecord.objects.get()
    assert (record.requested, record.model, record.status) == ("absent\ufffd", "", 404)
    assert (record.key_id, record.error) == (7, error)
    assert not UsageDay.objects.exists()
    assert not UsageTotal.objects.exists()


def test_prompts_and_answers_go_before_their_requests(settings):
    settings.CHAT_USAGE_RETENTION_DAYS = 60
    now = timezone.now()
    old, young = (
        RequestRecordFactory.create(created_at=now - timedelta(days=days))
        for days in (31, 29)
    )
    usage.prune()
    old.refresh_from_db()
    young.refresh_from_db()
    assert (old.prompt, old.answer, old.tools, old.excerpt) == (None, None, None, "")
    assert young.prompt


def test_old_records_are_deleted_every_hour_and_sums_stay(monkeypatch, settings):
    settings.CHAT_USAGE_RETENTION_DAYS = 30
    monkeypatch.setattr(usage, "PRUNED", 2)
    write = [ended(ended_at=NOON - timedelta(days=age)) for age in (1, 29, 31, 32, 33)]
    usage.write(write)
    with travel(NOON, tick=False):
        row = Schedule.objects.get(func="gateway.chat.metering.usage.prune")
        assert row.schedule_type == Schedule.HOURLY
        assert import_string(row.func)() == 3
    assert RequestRecord.objects.count() == 2
    assert UsageDay.objects.count() == 5


# ── Prices ────────────────────────────────────────────────────────────────────────────


OPENAI = "https://api.openai.com/v1"


@pytest.fixture(autouse=True)
def _forgotten():
    listed.cache_clear()
    yield
    listed.cache_clear()


def test_a_model_at_its_vendor_has_the_price_of_the_list():
    price = listed(OPENAI, "gpt-4o-mini")
    assert price is not None
    assert 0 < price.cached_input_price < price.prompt_price < price.completion_price
    assert listed("https://api.anthropic.com", "claude-sonnet-4-5-20250929") is not None


@pytest.mark.parametrize(
    ("base_url", "model", "is_public"),
    [
        ("", "gpt-4o-mini", True),
        ("http://127.0.0.1:8080/v1", "gpt-4o-mini", True),
        ("https://llm.internal.example/v1", "gpt-4o-mini", True),
        (OPENAI, "no-such-model", True),
        (OPENAI, "gpt-4o-mini", False),  # the list is switched off
    ],
)
def test_other_servers_and_models_have_none(settings, base_url, model, is_public):
    settings.CHAT_PUBLIC_PRICES = is_public
    assert listed(base_url, model) is None


def test_an_own_price_wins():
    target = Target(OPENAI, "gpt-4o-mini")
    endpoints = {
        name: ModelEntry(name, "openai", (target,)) for name in ("own", "listed")
    }
    own = ModelPriceFactory.create(model="own")
    prices = definitions.prices(endpoints)
    assert prices["own"] == own
    assert prices["listed"] == listed(OPENAI, "gpt-4o-mini")
    request = ended(target=target, usage=Usage(1_000_000, 0))
    public = cost_nano(request, {})
    assert public == round(prices["listed"].prompt_price * 10**9)
    assert cost_nano(request, {"small": own}) != public
