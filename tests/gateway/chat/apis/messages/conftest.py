"""Requests of Anthropic's shape, to upstreams of both kinds."""

from collections.abc import Callable
from typing import Any

import pytest

V1_MESSAGES = "/v1/messages"
Post = Callable[..., Any]


@pytest.fixture
def claude(claude) -> Post:
    """Send a request for a model behind an upstream of Anthropic's kind."""
    return _in_anthropics_shape(claude)


@pytest.fixture
def small(gateway) -> Post:
    """Send a request for a model behind an upstream of OpenAI's kind."""
    return _in_anthropics_shape(gateway.post)


def _in_anthropics_shape(post: Post) -> Post:
    def send(body: Any = None, *, path: str = V1_MESSAGES, **fields: Any) -> Any:
        return post(body, path=path, **{"max_tokens": 64, **fields})

    return send
