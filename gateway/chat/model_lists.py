"""Model endpoints as OpenAI's and Anthropic's addresses of models describe them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from gateway.chat.core.errors import InvalidValueError
from gateway.configuration.shapes import ModelEntry

# What the header of this name says: the client speaks Anthropic's shape.
VERSION_HEADER = "anthropic-version"
DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
EPOCH = "1970-01-01T00:00:00Z"  # the API's value for a date that is not known


def openai_list(endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
    return {"object": "list", "data": [openai_model(each) for each in endpoints]}


def openai_model(endpoint: ModelEntry) -> dict[str, Any]:
    name, upstream = endpoint.name, endpoint.upstream
    return {"id": name, "object": "model", "created": 0, "owned_by": upstream}


def anthropic_list(endpoints: Sequence[ModelEntry], query: str) -> dict[str, Any]:
    """Return a page of the models. Raises InvalidValueError: no such page."""
    models = [anthropic_model(endpoint) for endpoint in endpoints]
    parameters = {name: values[-1] for name, values in parse_qs(query).items()}
    limit = _limit(parameters.get("limit", str(DEFAULT_LIMIT)))
    if "before_id" in parameters:
        before = models[: _place(models, "before_id", parameters)]
        page, has_more = before[-limit:], len(before) > limit
    else:
        has_start = "after_id" in parameters
        start = _place(models, "after_id", parameters) + 1 if has_start else 0
        page, has_more = models[start : start + limit], len(models) > start + limit
    ends = [page[0]["id"], page[-1]["id"]] if page else [None, None]
    return {
        "data": page,
        "has_more": has_more,
        **dict(zip(("first_id", "last_id"), ends, strict=True)),
    }


def anthropic_model(endpoint: ModelEntry) -> dict[str, Any]:
    return {
        "type": "model",
        "id": endpoint.name,
        "display_name": endpoint.name,
        "created_at": EPOCH,
        "lifecycle": "active",
    }


def _limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 4
    if not is_number or not 1 <= int(text) <= MAX_LIMIT:
        raise InvalidValueError(f"limit: must be 1 to {MAX_LIMIT}.")
    return int(text)


def _place(
    models: Sequence[Mapping[str, Any]], name: str, parameters: Mapping[str, str]
) -> int:
    wanted = parameters[name]
    places = (place for place, model in enumerate(models) if model["id"] == wanted)
    place = next(places, None)
    if place is None:
        raise InvalidValueError(f"{name}: is the id of no model.")
    return place
