"""What is sent to the ingest route and to /v1/events: JSON with exact integers, and a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser

from gateway import json
from gateway.ingest import MARKDOWN, PLAIN
from webhooks_core.errors import PayloadTooLargeError
from webhooks_core.web.parsers import StrictJSONParser, check_length

# What clients send for a file of unknown type.
UNKNOWN = "application/octet-stream"
# A text in JSON with every character of two bytes escaped, and the fields beside it.
JSON_GROWTH, JSON_REST = 3, 65_536
MAX_DATA_BYTES = 262_144


def max_body_bytes() -> int:
    """Return the size of the largest body that can hold a document."""
    return JSON_GROWTH * settings.GATEWAY_INGEST_MAX_BYTES + JSON_REST


class ExactJSONParser(StrictJSONParser):
    """Parses JSON whose integers keep all their digits."""

    def loads(self, body: bytes) -> Any:
        try:
            return json.loads_strict(body)
        except orjson.JSONDecodeError:
            raise
        except ValueError as error:
            raise ParseError(f"The body is not usable: {error}.") from error


class EventParser(ExactJSONParser):
    max_bytes = 2 * MAX_DATA_BYTES


class DocumentJSONParser(ExactJSONParser):
    """Parses JSON as large as the largest document can make it."""

    @property
    def max_bytes(self) -> int:  # type: ignore[override] # follows the setting
        return max_body_bytes()


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
        try:
            form: Any = super().parse(stream, media_type, parser_context)
        except RequestDataTooBig as error:
            raise PayloadTooLargeError(
                "A form field is too large. Send the document as a file."
            ) from error
        files = [(name, file) for name, each in form.files.lists() for file in each]
        try:
            return _body(form.data.dict(), files)
        finally:
            for _, file in files:
                file.close()


def _body(fields: dict[str, Any], files: list[tuple[str, Any]]) -> dict[str, Any]:
    if files and ([name for name, _ in files] != ["file"] or "text" in fields):
        raise ParseError(
            "Send one document, as a file named file or as the field text."
        )
    for name, value in fields.items():
        if "\ufffd" in value:  # Django's, for what is none
            raise ParseError(f"{name} is not UTF-8.")
    if "metadata" in fields:
        try:
            fields["metadata"] = json.loads_strict(fields["metadata"].encode())
        except ValueError as error:
            raise ParseError("metadata is not JSON.") from error
    return (_described(files[0][1]) if files else {}) | fields


def _described(file: Any) -> dict[str, Any]:
    """Return the fields that a file gives: its text, name and type."""
    try:
        text = file.read().decode()
    except UnicodeDecodeError as error:
        raise ParseError("The file is not UTF-8 text.") from error
    name = file.name or ""
    content_type = (file.content_type or UNKNOWN).partition(";")[0].strip().lower()
    if content_type == UNKNOWN:
        content_type = MARKDOWN if name.lower().endswith(".md") else PLAIN
    return {"text": text, "title": name, "content_type": content_type}
