"""Requests of Anthropic's shape, to upstreams of both kinds."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.configuration.shapes import Target
from tests.gateway.chat.harness import MESSAGES

V1_MESSAGES = "/v1/messages"
Post = Callable[..., Any]


@pytest.fixture
def claude(gateway, upstream) -> Post:
    """Send a request for a model behind an upstream of Anthropic's kind."""
    target = Target(upstream.url, "claude-there", "sk-ant-secret")
    gateway.declare(name="claude", upstream="anthropic", targets=(target,))
    return _poster(gateway, "claude")


@pytest.fixture
def small(gateway) -> Post:
    """Send a request for a model behind an upstream of OpenAI's kind."""
    return _poster(gateway, "small")


def _poster(gateway: Any, model: str) -> Post:
    def post(body: Any = None, *, path: str = V1_MESSAGES, **fields: Any) -> Any:
        headers = fields.pop("headers", None)
        if body is None:
            fields = {"model": model, "max_tokens": 64, "messages": MESSAGES, **fields}
            body = json.dumps(fields)
        return gateway.post(body, path=path, headers=headers)

    return post
