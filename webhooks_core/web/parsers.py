"""Parse request bodies strictly: size, encoding, content coding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework import exceptions
from rest_framework.parsers import BaseParser

from webhooks_core.errors import ApiError, PayloadTooLargeError

MAX_BODY_BYTES = 65_536


class EncodedBodyError(ApiError):
    """Send the body as it is, without Content-Encoding.

    Once decoded it could be of any size.
    """

    status_code = 415
    default_headers = {"Accept-Encoding": "identity"}


def is_encoded(content_encoding: str | None) -> bool:
    """Return True if a header names a content coding (RFC 9110 section 8.4)."""
    return (content_encoding or "").strip().lower() not in {"", "identity"}


def is_over(declared: str, limit: int) -> bool:
    """Return True if a Content-Length is a number above the limit."""
    # The first 12 digits suffice to exceed any limit.
    return declared.isascii() and declared.isdigit() and int(declared[:12]) > limit


def check_length(parser_context: Mapping[str, Any] | None, *, limit: int) -> None:
    """Raise PayloadTooLargeError if a request declares a larger body.

    If a server refuses to read a body, only its declared length arrives here.
    """
    meta = parser_context["request"].META if parser_context else {}
    if is_over(str(meta.get("CONTENT_LENGTH") or ""), limit):
        raise _too_large(limit)


def _too_large(limit: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The body is over {limit} bytes.")


class StrictJSONParser(BaseParser):
    """Parses JSON of at most 64 KiB; refuses NaN, bad UTF-8, lone surrogates, deep nesting."""

    media_type = "application/json"
    max_bytes = MAX_BODY_BYTES

    def loads(self, body: bytes) -> Any:
        """Return JSON. Raises orjson.JSONDecodeError."""
        return orjson.loads(body)

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        check_length(parser_context, limit=self.max_bytes)
        body = stream.read(self.max_bytes + 1)
        if len(body) > self.max_bytes:
            raise _too_large(self.max_bytes)
        try:
            return self.loads(body)
        except orjson.JSONDecodeError as error:
            raise exceptions.ParseError(
                f"The body is not JSON: {error.msg} "
                f"(line {error.lineno}, column {error.colno})."
            ) from error
