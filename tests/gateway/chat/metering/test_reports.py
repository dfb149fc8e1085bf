"""GET /v1/usage: what a tenant is told of its own usage."""

from datetime import timedelta

import pytest

from gateway import configuration, keys
from gateway.chat.metering import reports, usage
from gateway.chat.metering.budget_rows import CounterKey, add_to_rows
from gateway.chat.metering.windows import start_of
from gateway.configuration.shapes import BudgetEntry
from tests.clock import travel
from tests.gateway.chat.factories import NOON, ModelPriceFactory, ended
from tests.gateway.client import Api

pytestmark = pytest.mark.django_db


def test_a_tenant_sees_its_own_usage(acme: Api, globex: Api):
    ModelPriceFactory.create(model="small")
    usage.write([ended(), ended(tenant="globex"), ended(principal="bob", model="big")])

    with travel(NOON, tick=False):
        response = acme.call("GET", "/v1/usage")

    assert response.status_code == 200
    shown = response.json()
    assert (shown["from"], shown["to"]) == ("2026-10-22", "2026-11-20")
    counts = {
        "requests": 1,
        "failures": 0,
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "estimated_requests": 0,
    }
    assert shown["items"] == [
        {"day": "2026-11-20", **who, **counts, "cost": cost}
        for who, cost in (
            ({"principal": "ada", "model": "small"}, "0.000013000"),
            ({"principal": "bob", "model": "big"}, "0.000000000"),
        )
    ]
    assert shown["total"]["requests"] == 2
    assert shown["total"]["cost"] == "0.000013000"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("group_by=model", [{"model": "big"}, {"model": "small"}]),
        ("group_by=principal,day", [{"day": "2026-11-20", "principal": "ada"}]),
        ("group_by=", []),
        ("model=big&group_by=model", [{"model": "big"}]),
        ("principal=nobody", []),
        ("to=2026-11-19", []),
    ],
)
def test_usage_can_be_grouped_and_narrowed(acme: Api, query, rows):
    usage.write([ended(), ended(model="big")])
    shown = acme.call("GET", f"/v1/usage?from=2026-11-01&{query}").json()
    groups = {"day", "principal", "model"}
    assert [
        {k: v for k, v in item.items() if k in groups} for item in shown["items"]
    ] == rows


@pytest.mark.parametrize(
    "query",
    [
        *("from=", "from=yesterday", "to=0001-01-01", "to=1900-01-01"),
        *("from=2026-11-21&to=2026-11-20", "from=2020-01-01&to=2026-11-20"),
        *("group_by=hour", "model=%00"),
    ],
)
def test_a_bad_question_is_a_bad_request(acme: Api, query):
    response = acme.call("GET", f"/v1/usage?{query}")
    assert response.status_code == 400
    assert set(response.json()) == {"detail"}


def test_an_answer_of_too_many_rows_is_a_bad_request(acme: Api, monkeypatch):
    monkeypatch.setattr(reports, "MAX_ROWS", 2)
    usage.write([ended(ended_at=NOON + timedelta(days=day)) for day in range(3)])
    span = "from=2026-11-01&to=2026-11-30"
    assert acme.call("GET", f"/v1/usage?{span}").status_code == 400
    shown = acme.call("GET", f"/v1/usage?{span}&group_by=model").json()
    assert [item["requests"] for item in shown["items"]] == [3]


def test_a_tenant_sees_what_is_left_of_its_own_budgets(
    acme: Api, globex: Api, monkeypatch
):
    """Also of those of its keys."""
    entries = (
        BudgetEntry("money", "cost", "month", 0.5, ("tenant",)),
        BudgetEntry("calls", "requests", "hour", 10, ("principal", "model")),
        BudgetEntry("shared", "requests", "hour", 10),
    )
    monkeypatch.setattr(
        configuration, "current", lambda: configuration.Configuration(budgets=entries)
    )
    own = {"counts": "tokens", "window": "month", "limit": 100}
    number = keys.create(tenant="acme", principal="ada", budget=own).key.pk
    keys.create(tenant="globex", principal="gus", budget=own)
    hour = int(NOON.timestamp())
    month = int(start_of("month", NOON).timestamp())
    one, of_key = "principal acme/ada, model small", f"key acme/ada#{number}"
    add_to_rows(
        {
            CounterKey("money", "tenant acme", month, "acme"): 510_000_000,
            CounterKey("money", "tenant acme", month - 86_400 * 31, "acme"): 7,
            CounterKey("money", "tenant globex", month, "globex"): 1,
            CounterKey("calls", one, hour, "acme"): 4,
            CounterKey("shared", "", hour, ""): 9,
            CounterKey(f"key {number}", of_key, month, "acme"): 40,
        }
    )
    with travel(NOON, tick=False):
        shown = acme.call("GET", "/v1/usage").json()["budgets"]
        (other,) = globex.call("GET", "/v1/usage").json()["budgets"]
    assert other["subject"] == "tenant globex"
    ends = "2026-12-01T00:00:00.000000Z"
    rows = [
        ("money", "tenant acme", "cost", "month", "0.500000000", "0.510000000", "0.000000000", ends),
        ("calls", one, "requests", "hour", 10, 4, 6, "2026-11-20T13:00:00.000000Z"),
        (f"key {number}", of_key, "tokens", "month", 100, 40, 60, ends),
    ]  # fmt: skip
    assert [tuple(row.values()) for row in shown] == rows
    names = "name subject counts window limit used left resets_at"
    assert list(shown[0]) == names.split()
