"""Fields of models."""

from __future__ import annotations

import json
from typing import Any

from django.db import models

INTEGERS = range(-(2**63), 2**64)  # what orjson writes


class RoundedDecoder(json.JSONDecoder):
    """Reads an integer above 64 bits as a float, as orjson does."""

    def __init__(self) -> None:
        super().__init__(parse_int=_number)


def _number(text: str) -> int | float:
    number = int(text)
    return number if number in INTEGERS else float(number)


class RoundedJSONField(models.JSONField):
    """JSON whose numbers come back as they were stored: PostgreSQL makes an integer of 1e20."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.decoder = RoundedDecoder

    def deconstruct(self) -> Any:
        """Return a plain field for migrations: the column is the same."""
        name, _, args, kwargs = super().deconstruct()
        kwargs.pop("decoder")
        return name, "django.db.models.JSONField", args, kwargs
