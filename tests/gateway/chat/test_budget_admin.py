"""Budgets in the admin: what is stored, what is refused, and what is used now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import time_machine
from django.core.checks import run_checks
from structlog.testing import capture_logs

from gateway import configuration
from gateway.chat.budget_models import Budget
from gateway.chat.metering import budget_definitions
from gateway.chat.metering.budget_counters import CounterKey
from gateway.chat.metering.budget_stores import add_to_rows
from gateway.chat.metering.windows import start_of
from gateway.configuration.shapes import BudgetEntry

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway_chat/budget/"
FORM = {
    "name": "acme-monthly",
    "counts": "cost",
    "window": "month",
    "limit": "500.25",
    "per": ["tenant", "model"],
    "tenants": "acme",
    "principals": "globex/gus",
    "only_models": "small\n large",
    "is_active": "on",
}
ENTRY = BudgetEntry(
    "acme-monthly",
    "cost",
    "month",
    500.25,
    ("tenant", "model"),
    frozenset({"acme"}),
    frozenset({("globex", "gus")}),
    frozenset({"small", "large"}),
)
OF_FILE = BudgetEntry("of-file", "requests", "hour", 10, ("tenant",))


@pytest.fixture
def file(monkeypatch) -> None:
    """A configuration file with one budget."""
    current = configuration.Configuration(budgets=(OF_FILE,))
    monkeypatch.setattr(configuration, "current", lambda: current)


@pytest.mark.usefixtures("file")
def test_a_budget_of_the_admin_is_in_force_beside_those_of_the_file(admin_client):
    assert admin_client.post(f"{LIST}add/", FORM).status_code == 302
    assert budget_definitions.budgets() == [OF_FILE, ENTRY]
    Budget.objects.update(is_active=False)
    assert budget_definitions.budgets() == [OF_FILE]


def test_a_change_keeps_what_the_counters_count(admin_client):
    admin_client.post(f"{LIST}add/", FORM)
    page = f"{LIST}{Budget.objects.get().pk}/change/"
    other = {"name": "x", "counts": "requests", "window": "day", "per": []}
    changed = FORM | other | {"limit": "0.5", "tenants": ""}
    assert admin_client.post(page, changed).status_code == 302
    (entry,) = budget_definitions.budgets()
    assert (entry.limit, entry.tenants) == (0.5, frozenset())
    kept = (entry.name, entry.counts, entry.window, entry.per)
    assert kept == ("acme-monthly", "cost", "month", ("tenant", "model"))


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("name", "of-file", "The configuration file has a budget of this name."),
        ("name", "", "This field is required."),
        ("counts", "words", "Select a valid choice."),
        ("window", "year", "Select a valid choice."),
        ("limit", "0", "must be greater than 0."),
        ("limit", "-1", "must be greater than 0."),
        ("limit", "NaN", "Enter a number."),
        ("limit", "2000000000", "must be less than or equal to 1000000000."),
        ("per", "session", "Select a valid choice. session is not one"),
        ("tenants", "two words", "must match pattern"),
        ("principals", "nobody", "must match pattern"),
        ("only_models", "x" * 3000, "must have at most 2048 characters"),
    ],
)
def test_a_bad_budget_is_not_stored(admin_client, field, value, text):
    response = admin_client.post(f"{LIST}add/", FORM | {field: value})
    assert response.status_code == 200
    assert text in response.content.decode()
    assert not Budget.objects.exists()


def test_a_part_of_a_request_is_no_limit(admin_client):
    form = FORM | {"counts": "requests", "limit": "1.5"}
    response = admin_client.post(f"{LIST}add/", form)
    assert "is not a whole number" in response.content.decode()
    assert not Budget.objects.exists()


def test_a_row_that_is_not_valid_is_left_out_and_found_by_the_check():
    Budget.objects.create(name="bad", limit=1, window="year")
    with capture_logs() as logs:
        assert budget_definitions.budgets() == []
    assert logs[0]["budget"] == "bad"
    (warning,) = warnings()
    assert "bad" in warning
    assert "window" in warning


@pytest.mark.usefixtures("file")
def test_the_check_finds_a_budget_that_the_file_hides():
    assert warnings() == []
    Budget.objects.create(name="of-file", limit=1)
    assert budget_definitions.budgets() == [OF_FILE]
    assert warnings() == [
        "The budget 'of-file' of the admin has no effect: hidden by the file."
    ]


def warnings() -> list[str]:
    found = run_checks(databases=["default"])
    return [message.msg for message in found if message.id == "gateway_chat.W001"]


@pytest.mark.usefixtures("file")
def test_the_list_shows_the_budgets_of_the_file_and_no_way_to_change_them(admin_client):
    admin_client.post(f"{LIST}add/", FORM)
    page = admin_client.get(LIST).content.decode()
    for text in ("a cost of 500.25 a month", "acme, globex/gus for small, large"):
        assert text in page
    assert "10 requests an hour" in page
    assert page.count("/change/") == page.count(
        f"{LIST}{Budget.objects.get().pk}/change/"
    )


@pytest.mark.usefixtures("file")
def test_what_is_used_and_left_now_is_shown(admin_client, django_user_model, client):
    now = datetime.now(UTC)
    start = int(start_of("hour", now).timestamp())
    counters = {"tenant acme": 8, "tenant <b>": 12}
    for subject, amount in counters.items():
        add_to_rows({CounterKey("of-file", subject, start, ""): amount})
        add_to_rows({CounterKey("of-file", subject, start - 3600, ""): 10**6})
    with time_machine.travel(now, tick=False):  # another hour may begin
        page = admin_client.get(f"{LIST}now/").content.decode()
    cells = page.replace(" ", "").replace("\n", "")
    assert "<td>8</td><td>2</td><td>80%</td>" in cells
    assert "tenant &lt;b&gt;" in page
    assert "<td>12</td><td>0</td><td>120%</td>" in cells
    assert "1000000" not in page

    staff = django_user_model.objects.create_user("staff", is_staff=True)
    client.force_login(staff)
    assert client.get(f"{LIST}now/").status_code == 403
