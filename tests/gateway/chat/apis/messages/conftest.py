"""Requests of Anthropic's shape, to an upstream of Anthropic's kind."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def claude(claude) -> Callable[..., Any]:
    def send(body: Any = None, *, path: str = "/v1/messages", **fields: Any) -> Any:
        return claude(body, path=path, **{"max_tokens": 64, **fields})

    return send
