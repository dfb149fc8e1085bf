"""What a key can be, wherever it is made."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway import keys

WHO: Any = {"tenant": "acme", "principal": "ada", "name": ""}
BUDGET = {"counts": "cost", "window": "month", "limit": 12.5}


def test_the_largest_values_are_accepted():
    models = [f"{number:x<128}" for number in range(100)]
    keys.check(**WHO | {"name": "x" * 100}, days=3650, models=models, budget=BUDGET)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"tenant": "a b"}, "tenant: 1 to 128 of the characters"),
        ({"tenant": "x" * 129}, "tenant: 1 to 128"),
        ({"principal": ""}, "principal: 1 to 128"),
        ({"name": "\t"}, "the name must be at most 100 printable characters"),
        ({"name": "x" * 101}, "the name must be at most 100"),
        ({"days": 0}, "days must be between 1 and 3650"),
        ({"days": 3651}, "days must be between"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "must be in the future"),
        ({"scopes": []}, "scopes must be at least one of chat, events"),
        ({"scopes": ["admin"]}, "scopes must be at least one of chat, events"),
        ({"models": []}, "models must be 1 to 100 names"),
        ({"models": ["x"] * 101}, "models must be 1 to 100 names"),
        ({"models": ["x", "a\0"]}, "a model must have 1 to 128 printable characters"),
        ({"models": ["x" * 129]}, "a model must have 1 to 128"),
        ({"models": [""]}, "a model must have 1 to 128"),
        ({"budget": BUDGET | {"window": "decade"}}, "budget: window: must be 'minute'"),
        ({"budget": BUDGET | {"limit": 0}}, "budget: limit"),
        ({"budget": {}}, "budget: counts"),
    ],
)
def test_a_key_that_cannot_be_says_why(fields: dict[str, Any], text: str):
    with pytest.raises(keys.KeyInputError, match=text):
        keys.check(**WHO | fields)
