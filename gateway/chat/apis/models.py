"""Model endpoints as OpenAI's and Anthropic's addresses of models describe them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.configuration.shapes import ModelEntry

# What the header of this name says: the client speaks Anthropic's shape.
VERSION_HEADER = "anthropic-version"
EPOCH = "1970-01-01T00:00:00Z"  # the API's value for a date that is not known


def openai_list(endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
    return {"object": "list", "data": [openai_model(each) for each in endpoints]}


def openai_model(endpoint: ModelEntry) -> dict[str, Any]:
    name, upstream = endpoint.name, endpoint.upstream
    return {"id": name, "object": "model", "created": 0, "owned_by": upstream}


def anthropic_list(endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
    """Return all models as one page."""
    models = [anthropic_model(endpoint) for endpoint in endpoints]
    ends = [models[0]["id"], models[-1]["id"]] if models else [None, None]
    return {"data": models, "has_more": False, "first_id": ends[0], "last_id": ends[1]}


def anthropic_model(endpoint: ModelEntry) -> dict[str, Any]:
    return {
        "type": "model",
        "id": endpoint.name,
        "display_name": endpoint.name,
        "created_at": EPOCH,
        "lifecycle": "active",
    }
