"""Reading what a stranger sends: JSON bodies and query parameters, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from recording.errors import BadRequestError, PayloadTooLargeError

MAX_BODY_BYTES = 65_536

DIGITS = re.compile(r"[0-9]+")
# Any number of more digits than this is larger than everything that we count.
MAX_DIGITS = 12


class StrictJSONParser(BaseParser):
    """Parses JSON of at most 64 KiB; refuses NaN, bad UTF-8, lone surrogates, deep nesting."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise PayloadTooLargeError(f"The body is over {MAX_BODY_BYTES} bytes.")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadRequestError(
                f"The body is not JSON: {error.msg} "
                f"(line {error.lineno}, column {error.colno})."
            ) from error


def json_object(request: Request) -> dict[str, Any]:
    """Return the body, which must be a JSON object.

    Raises BadRequestError, PayloadTooLargeError or (from DRF) UnsupportedMediaType.
    """
    if request.stream is None:
        raise BadRequestError(
            "The body is empty: send a JSON object, and its Content-Length."
        )
    body = request.data
    if not isinstance(body, dict):
        raise BadRequestError("The body must be a JSON object.")
    return body


def positive_integer(
    request: Request, name: str, *, default: int, maximum: int | None = None
) -> int:
    """Return a query parameter of at least 1; above `maximum` it is the maximum.

    Raises BadRequestError.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not DIGITS.fullmatch(text) or not (digits := text.lstrip("0")):
        raise BadRequestError(f"{name} must be an integer of at least 1.")
    number = int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS
    return number if maximum is None else min(number, maximum)
