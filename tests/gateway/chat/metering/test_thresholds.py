"""Reports of budgets: once for each share and window, to the subscriptions that name them."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.chat.metering.budget_rows import CounterKey, add_to_rows
from gateway.chat.metering.thresholds import Reached, highest_share, report
from gateway.chat.metering.windows import start_of
from gateway.chat.models import BudgetCounter
from gateway.configuration.shapes import BudgetEntry
from gateway.event_types import BUDGET_THRESHOLD
from gateway.webhooks import PROFILE, matches
from tests.documented import assert_valid
from webhooks_core import profiles
from webhooks_core.models import Event

pytestmark = pytest.mark.django_db
ENTRY = BudgetEntry("calls", "requests", "month", 10, ("tenant",))
NOW = datetime.now(UTC)
KEY = CounterKey(
    "calls", "tenant acme", int(start_of("month", NOW).timestamp()), "acme"
)


def use(amount: int, key: CounterKey = KEY, entry: BudgetEntry = ENTRY) -> None:
    """Add to a counter as any process does, and report what it reached."""
    stored = add_to_rows({key: amount})[key]
    if highest_share(entry, stored.amount) > stored.reported:
        report([Reached(key, entry, stored.amount)])


def events() -> list[dict[str, Any]]:
    rows = Event.objects.filter(type=BUDGET_THRESHOLD).order_by("pk")
    return [json.loads(bytes(row.body)) for row in rows]


def test_only_subscriptions_that_name_the_event_get_it():
    assert not matches([], BUDGET_THRESHOLD)
    assert matches([BUDGET_THRESHOLD], BUDGET_THRESHOLD)


def test_each_share_is_reported_once_in_a_window():
    with capture_logs() as logs:
        for _ in range(12):
            use(1)
    shares = [line["percent"] for line in logs if line["event"] == "budget threshold"]
    assert shares == [50, 80, 100]
    assert [event["data"]["percent"] for event in events()] == [50, 80, 100]
    use(5, KEY._replace(window=KEY.window + 1))
    assert len(events()) == 4


def test_of_several_processes_that_see_a_share_one_reports_it():
    add_to_rows({KEY: 9})
    for _ in range(3):
        report([Reached(KEY, ENTRY, 9)])
    assert [event["data"]["percent"] for event in events()] == [50, 80]


def test_the_event_says_what_is_left_until_when():
    money = replace(ENTRY, name="money", counts="cost", limit=0.5)
    use(400_000_000, KEY._replace(budget="money"), money)
    event = events()[-1]
    assert (event["tenant_id"], event["principal_id"]) == ("acme", "system")
    data = event["data"]
    assert_valid(data, dict(profiles.get(PROFILE).event_types[BUDGET_THRESHOLD].schema))
    assert data | {"resets_at": ""} == {
        "budget": "money",
        "subject": "tenant acme",
        "counts": "cost",
        "window": "month",
        "percent": 80,
        "limit": "0.500000000",
        "used": "0.400000000",
        "resets_at": "",
    }
    assert data["resets_at"] > event["created_at"]


def test_a_budget_of_several_tenants_is_reported_to_none_of_them():
    with capture_logs() as logs:
        use(10, KEY._replace(subject="", tenant=""))
    assert len(logs) == 3
    assert events() == []


def test_a_failure_to_publish_leaves_the_share_for_the_next_report(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(profiles, "PROFILES", {})
        with pytest.raises(LookupError):
            use(5)
    assert BudgetCounter.objects.get().reported == 0
    use(0)
    assert len(events()) == 1
