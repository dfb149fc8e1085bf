"""Models and budgets of the admin: entries of the configuration file, as YAML."""

from typing import Any

import pytest

from gateway import configuration
from gateway.chat.metering import definitions
from gateway.chat.model_registry import load
from gateway.chat.models import Budget, ModelEndpoint
from gateway.configuration.shapes import BudgetEntry, Configuration, Target
from tests.gateway.chat.factories import ModelEndpointFactory
from webhooks_core.secrets import EncryptedText

pytestmark = pytest.mark.django_db
MODELS, BUDGETS = "/admin/gateway_chat/modelendpoint/", "/admin/gateway_chat/budget/"
DEFINITION = """upstream: openai
base_url: http://127.0.0.1:1/v1
model: there
allow: {tenants: [acme]}
extra_headers: {X-Team: "${TEAM}"}
"""
# Each line has ten times the values of the one before.
BILLION = "a: &a [1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
LIMIT = "{counts: requests, window: hour, limit: 5, per: [tenant]}"


def form(name: str, definition: str, **fields: str) -> dict[str, str]:
    return {"name": name, "definition": definition, "is_active": "on"} | fields


@pytest.fixture(autouse=True)
def team(monkeypatch):
    monkeypatch.setenv("TEAM", "harbour")


def test_a_model_is_made_in_the_admin_and_its_key_is_kept(admin_client, monkeypatch):
    fields = form("rows", DEFINITION, api_key="sk-secret")
    assert admin_client.post(f"{MODELS}add/", fields).status_code == 302
    entry = load()["rows"]
    assert entry.targets == (Target("http://127.0.0.1:1/v1", "there", "sk-secret"),)
    assert entry.allow.tenants == frozenset({"acme"})
    assert entry.extra_headers == {"X-Team": "harbour"}
    row = ModelEndpoint.objects.get()
    stored: Any = row.api_key
    assert "sk-secret" not in stored.ciphertext
    page = f"{MODELS}{row.pk}/change/"
    assert "sk-secret" not in admin_client.get(page).content.decode()
    changed = form("rows", DEFINITION.replace("there", "other"), api_key="")
    assert admin_client.post(page, changed).status_code == 302
    assert load()["rows"].targets[0] == Target(
        "http://127.0.0.1:1/v1", "other", "sk-secret"
    )
    monkeypatch.delenv("TEAM")  # as without its key, it is left out
    assert "rows" not in load()


def test_a_key_that_cannot_be_read_any_more_is_set_anew(admin_client):
    row = ModelEndpointFactory.create(name="m", api_key=EncryptedText("nonsense"))
    page = f"{MODELS}{row.pk}/change/"
    kept = admin_client.post(page, form("m", DEFINITION, api_key=""))
    assert "cannot be read any more: set it anew" in kept.content.decode()
    assert admin_client.get(MODELS).status_code == 200
    changed = admin_client.post(page, form("m", DEFINITION, api_key="sk-new"))
    assert changed.status_code == 302
    assert load()["m"].targets[0].api_key == "sk-new"


def test_the_key_is_that_of_each_target_without_one():
    targets = "{base_url: 'http://a'}, {base_url: 'http://b', api_key: k}"
    entry = configuration.model("m", f"{{upstream: openai, targets: [{targets}]}}", "x")
    assert [target.api_key for target in entry.targets] == ["x", "k"]


@pytest.mark.parametrize(
    ("address", "fields", "fault"),
    [
        (MODELS, form("echo", "upstream: echo"), "The configuration file has one"),
        (
            MODELS,
            form("m", "name: x"),
            "must be the keys of an entry, without its name",
        ),
        (MODELS, form("m", "- a"), "must be the keys of an entry"),
        (MODELS, form("m", BILLION), "*a is not what JSON has"),
        (MODELS, form("m", "{upstream: echo, fallbacks: [x]}"), "is no other model"),
        (
            MODELS,
            form("m", "upstream: echo", api_key="${NOT_SET}"),
            "NOT_SET is not set",
        ),
        (BUDGETS, form("b", "{counts: x, window: day, limit: 1}"), "counts: must"),
        (BUDGETS, form("key 1", LIMIT), "is the name of a key"),
    ],
)
def test_what_the_file_refuses_is_not_stored(admin_client, address, fields, fault):
    page = admin_client.post(f"{address}add/", fields)
    assert fault in page.content.decode()
    assert not ModelEndpoint.objects.exists()
    assert not Budget.objects.exists()


def test_one_list_has_what_the_file_declares_and_what_the_admin_has(
    admin_client, monkeypatch
):
    declared = BudgetEntry("declared", "requests", "hour", 7)
    current = Configuration(models=configuration.current().models, budgets=(declared,))
    monkeypatch.setattr(configuration, "current", lambda: current)
    ModelEndpointFactory.create(name="broken", definition="upstream: [")
    ModelEndpointFactory.create(name="echo")
    page = admin_client.get(MODELS).content.decode()
    for text in (
        *("the configuration file", "hidden by the configuration file"),
        "has no effect: is not YAML",
    ):
        assert text in page
    assert "/None/" not in page  # what the file declares is no link
    assert ">declared<" in admin_client.get(BUDGETS).content.decode()


def test_what_a_counter_counts_cannot_change(admin_client):
    assert admin_client.post(f"{BUDGETS}add/", form("b", LIMIT)).status_code == 302
    page = f"{BUDGETS}{Budget.objects.get().pk}/change/"
    for changed in (LIMIT.replace("hour", "day"), LIMIT.replace("tenant", "key")):
        text = admin_client.post(page, form("b", changed)).content.decode()
        assert "cannot change: make another budget." in text
    larger = form("b", LIMIT.replace("5", "9"))
    assert admin_client.post(page, larger).status_code == 302
    assert [each.limit for each in definitions.budgets()] == [9]


def test_a_budget_whose_stored_entry_is_broken_can_be_repaired(admin_client):
    row = Budget.objects.create(name="b", definition="counts: x")
    page = f"{BUDGETS}{row.pk}/change/"
    refused = admin_client.post(page, form("b", "counts: y")).content.decode()
    assert "counts: must" in refused
    assert admin_client.post(page, form("b", LIMIT)).status_code == 302
    assert [each.name for each in definitions.budgets()] == ["b"]


def test_a_budget_without_effect_is_left_out(monkeypatch):
    Budget.objects.create(name="bad", definition="counts: x")
    Budget.objects.create(name="hidden", definition=LIMIT)
    declared = BudgetEntry("hidden", "requests", "hour", 7)
    current = Configuration(budgets=(declared,))
    monkeypatch.setattr(configuration, "current", lambda: current)
    assert definitions.budgets() == [declared]
