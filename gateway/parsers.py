"""What is sent to the ingest route and to /v1/events: JSON of their sizes, and a form."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson
from django.conf import settings
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser

from gateway.ingest import PLAIN
from webhooks_core.web.json_values import check_values
from webhooks_core.web.parsers import StrictJSONParser, check_length

# What clients send for a file of unknown type.
UNKNOWN = "application/octet-stream"
# A text in JSON with every character of two bytes escaped, and the fields beside it.
JSON_GROWTH, JSON_REST = 3, 65_536
MAX_DATA_BYTES = 262_144


def max_body_bytes() -> int:
    """Return the size of the largest body that can hold a document."""
    return JSON_GROWTH * settings.GATEWAY_INGEST_MAX_BYTES + JSON_REST


class EventParser(StrictJSONParser):
    max_bytes = 2 * MAX_DATA_BYTES


class DocumentJSONParser(StrictJSONParser):
    """Parses JSON as large as the largest document can make it."""

    @property
    def max_bytes(self) -> int:  # type: ignore[override] # follows the setting
        return max_body_bytes()

    def loads(self, body: bytes) -> Any:
        try:
            check_values(body)
        except ValueError as error:
            raise ParseError(f"The body is not usable: {error}.") from error
        return super().loads(body)


class DocumentFormParser(MultiPartParser):
    """Parses a form with the document as the file `file`; gives what the JSON body would be.

    The file's name and type stand in for absent fields.
    """

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        check_length(parser_context, limit=max_body_bytes())
        form: Any = super().parse(stream, media_type, parser_context)
        fields = form.data.dict()
        if "metadata" in fields:
            with suppress(orjson.JSONDecodeError):  # a text is no object
                fields["metadata"] = orjson.loads(fields["metadata"])
        file = form.files.get("file")
        return _described(file) | fields if file else fields


def _described(file: Any) -> dict[str, Any]:
    """Return the fields that a file gives: its text, name and type."""
    try:
        with file:
            text = file.read().decode()
    except UnicodeDecodeError as error:
        raise ParseError("The file is not UTF-8 text.") from error
    kind = (file.content_type or UNKNOWN).partition(";")[0].strip().lower()
    content_type = PLAIN if kind == UNKNOWN else kind
    return {"text": text, "title": file.name or "", "content_type": content_type}
