"""A request as a client sends it and as an upstream gets it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from gateway import json
from gateway.chat.errors import InvalidRequestError, InvalidValueError
from gateway.json import member

# OpenAI takes at most 300,000 tokens of a request for embeddings, each of them a value.
# With as many names that differ, orjson lets no other thread run for about 0.1 s.
MAX_VALUES = 400_000


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A JSON object that names its model endpoint."""

    model: str
    stream: bool
    body: Mapping[str, Any]
    raw: bytes = b""  # the body as it was sent

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Return the request. Raises InvalidRequestError with an argument per fault."""
        body = _object(raw)
        if faults := [*_faults(body)]:
            raise InvalidRequestError(*faults)
        return cls(body["model"], body.get("stream") is True, body, raw)

    @property
    def wants_usage(self) -> bool:
        """True if the client wants the chunk that holds the usage."""
        return member(self.body, "stream_options", "include_usage") is True

    @property
    def choices(self) -> int:
        """The number of choices that the client wants; the upstream refuses an invalid one."""
        number = self.body.get("n")
        return number if isinstance(number, int) and number > 1 else 1

    def without_body(self) -> Self:
        return type(self)(self.model, self.stream, {})


def dump(body: Mapping[str, Any]) -> bytes:
    """Return the body of a request to an upstream as JSON. Raises InvalidValueError."""
    try:
        return json.dumps(body)
    except ValueError as error:
        raise InvalidValueError("The body is nested too deeply.") from error


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw, MAX_VALUES)
    except ValueError as error:
        raise InvalidRequestError(f"The body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise InvalidRequestError("The body must be a JSON object.")
    return body


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    model = body.get("model")
    if "model" not in body:
        yield "model: this field is required."
    elif not isinstance(model, str) or not model:
        yield "model: must be a non-empty string."
    if not isinstance(body.get("stream"), bool | None):
        yield "stream: must be a boolean."
