from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command

from gateway.chat.metering import budget_definitions
from gateway.chat.metering.price_list import listed
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import ModelEntry, Target
from tests.gateway.chat.factories import ModelPriceFactory
from tests.gateway.chat.metering.test_usage import ended

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
    ("base_url", "model"),
    [
        ("", "gpt-4o-mini"),
        ("http://127.0.0.1:8080/v1", "gpt-4o-mini"),
        ("https://llm.internal.example/v1", "gpt-4o-mini"),
        (OPENAI, "no-such-model"),
    ],
)
def test_other_servers_and_models_have_none(base_url, model):
    assert listed(base_url, model) is None


def test_the_list_can_be_switched_off(settings):
    settings.CHAT_PUBLIC_PRICES = False
    assert listed(OPENAI, "gpt-4o-mini") is None


@pytest.mark.django_db
def test_an_own_price_wins():
    target = Target(OPENAI, "gpt-4o-mini")
    endpoints = {
        name: ModelEntry(name, "openai", (target,)) for name in ("own", "listed")
    }
    own = ModelPriceFactory.create(model="own")
    prices = budget_definitions.prices(endpoints)
    assert prices["own"] == own
    assert prices["listed"] == listed(OPENAI, "gpt-4o-mini")
    request = ended(
        base_url=OPENAI, upstream_model="gpt-4o-mini", usage=Usage(1_000_000, 0)
    )
    public = request.cost_nano({})
    assert public == round(prices["listed"].prompt_price * 10**9)
    assert request.cost_nano({"small": own}) != public


def test_the_check_names_models_without_a_price_whose_cost_is_limited(tmp_path):
    file = tmp_path / "gateway.yaml"
    models = """
models:
  - {name: listed, upstream: openai, base_url: "https://api.openai.com/v1", model: gpt-4o}
  - {name: own, upstream: openai, base_url: "http://127.0.0.1:1/v1"}
  - {name: "{other}", upstream: openai, base_url: "http://127.0.0.1:1/v1"}
"""
    budget = "  - {name: b%s, counts: %s, window: day, limit: 1%s}\n"
    budgets = budget % (1, "tokens", "") + budget % (
        2,
        "cost",
        ", models: [listed, own]",
    )
    cost = budget % (3, "cost", "")
    for text, named, count in (
        ("", [], 0),
        (budgets, ["own"], 2),
        (cost, ["own", "{other}"], 1),
    ):
        file.write_text(models + ("budgets:\n" + text if text else ""))
        counted = json.loads(checked(file, "--json"))
        assert counted["without_price"] == named
        assert counted["budgets"] == count
        answer = checked(file)
        assert (f": {', '.join(named)}." in answer) is bool(named)


def checked(file: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("check_gateway_config", str(file), *options, stdout=out)
    return out.getvalue()
