"""Public prices in US dollars, from the package genai-prices: for models without an own price."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from django.conf import settings

from gateway.chat.models import ModelPrice

# The list has prices that grow with the length of a request: these are for short ones.
TOKENS = 1000
PER_MILLION = 1000


@lru_cache(maxsize=1000)
def listed(base_url: str, model: str) -> ModelPrice | None:
    """Return the list's price of a model at a vendor's address; None if it has none."""
    if not (base_url and settings.CHAT_PUBLIC_PRICES):
        return None
    # Imported with its list at the first use: it takes 0.4 s.
    from genai_prices import Usage, calc_price

    def price(**tokens: int) -> Decimal:
        usage = Usage(**tokens)
        result = calc_price(usage, model_ref=model, provider_api_url=base_url)
        return result.total_price * PER_MILLION

    try:
        return ModelPrice(
            model=model,
            prompt_price=price(input_tokens=TOKENS),
            completion_price=price(output_tokens=TOKENS),
            cached_input_price=price(input_tokens=TOKENS, cache_read_tokens=TOKENS),
            cache_write_price=price(input_tokens=TOKENS, cache_write_tokens=TOKENS),
        )
    except LookupError:
        return None
