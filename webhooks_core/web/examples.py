"""Examples of requests and responses for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

TIME = "2026-11-21T03:20:00.000000Z"


def request_example(value: Any) -> OpenApiExample:
    """Return the example of a request."""
    return OpenApiExample("request", value, request_only=True)


def response_example(value: Any) -> OpenApiExample:
    """Return the example of a response."""
    return OpenApiExample(
        "response", value, response_only=True, status_codes=["200", "201", "202"]
    )
