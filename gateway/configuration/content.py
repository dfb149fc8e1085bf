"""The part of a configuration that says whose prompts and answers are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from gateway.configuration.rules import (
    FromFile,
    Name,
    Text,
)


@dataclass(frozen=True, slots=True)
class RequestLogSettings(FromFile):
    """The keys under `request_log`: whose prompts and answers are stored, and for how long.

    A request is stored if its model or its tenant is named: either match is enough. Of a prompt
    and of an answer so many characters are kept.
    """

    models: frozenset[Text] = frozenset()
    tenants: frozenset[Name] = frozenset()
    max_characters: Annotated[int, Field(strict=True, ge=1_000, le=1_000_000)] = 50_000
    retention_days: Annotated[int, Field(strict=True, ge=1, le=3650)] = 30

    def wants(self, *, model: str, tenant: str) -> bool:
        """Return True if a request is stored."""
        return model in self.models or tenant in self.tenants
