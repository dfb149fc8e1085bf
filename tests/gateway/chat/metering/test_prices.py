import pytest

from gateway.chat.metering import definitions
from gateway.chat.metering.definitions import listed
from gateway.chat.metering.usage import cost_nano
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import ModelEntry, Target
from tests.gateway.chat.factories import ModelPriceFactory, ended

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
    prices = definitions.prices(endpoints)
    assert prices["own"] == own
    assert prices["listed"] == listed(OPENAI, "gpt-4o-mini")
    target = Target(OPENAI, "gpt-4o-mini")
    request = ended(target=target, usage=Usage(1_000_000, 0))
    public = cost_nano(request, {})
    assert public == round(prices["listed"].prompt_price * 10**9)
    assert cost_nano(request, {"small": own}) != public
