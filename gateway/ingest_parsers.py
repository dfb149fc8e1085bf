"""Reading what is sent to the ingest route: JSON or multipart, in memory, up to a limit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadedfile import SimpleUploadedFile, UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from gateway.chat.core import json_numbers
from gateway.ingest import HTML, MARKDOWN, METADATA_TOO_LARGE, PLAIN
from webhooks_core.web.errors import PayloadTooLargeError
from webhooks_core.web.parsers import StrictJSONParser, check_length

TYPES_BY_SUFFIX = {
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
}
# The content types that clients send for a file of unknown type.
UNKNOWN_TYPES = ("", "application/octet-stream")
# Django's parser silently puts this in place of what is not UTF-8.
REPLACED = "\ufffd"
# A text in JSON with every character of two bytes escaped, and the fields beside it.
JSON_GROWTH, JSON_REST = 3, 65_536


def max_body_bytes() -> int:
    """Return the size of the largest body that can hold a document."""
    return JSON_GROWTH * settings.GATEWAY_INGEST_MAX_BYTES + JSON_REST


class DocumentJSONParser(StrictJSONParser):
    """Parses JSON as large as the largest document can make it."""

    @property
    def max_bytes(self) -> int:  # type: ignore[override] # follows the setting
        return max_body_bytes()

    def loads(self, body: bytes) -> Any:
        return exactly(body)


def exactly(raw: bytes) -> Any:
    """Return JSON whose integers have all their digits.

    Raises orjson.JSONDecodeError, and ParseError for more values than any metadata can have.
    """
    try:
        return json_numbers.loads_finite(raw)
    except orjson.JSONDecodeError:
        raise
    except ValueError as error:
        raise ParseError(METADATA_TOO_LARGE) from error


class DocumentFormParser(BaseParser):
    """Parses a form with the document as the file `file` (or the field `text`).

    Gives what the JSON body would be; file name and type stand in for absent fields.
    """

    media_type = "multipart/form-data"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        check_length(parser_context, limit=max_body_bytes())
        meta = (parser_context or {})["request"].META
        # Django's parser knows the type in small letters only.
        _, _, parameters = meta["CONTENT_TYPE"].partition(";")
        meta = meta | {"CONTENT_TYPE": f"{self.media_type};{parameters}"}
        try:
            fields, files = MultiPartParser(
                meta, stream, [_InMemory()], "utf-8"
            ).parse()
        except MultiPartParserError as error:
            raise ParseError("The body is not a well-formed form.") from error
        except RequestDataTooBig as error:
            raise PayloadTooLargeError(
                "A form field is too large; send the document as a file."
            ) from error
        return _body(fields, files)


def _body(fields: Any, files: Any) -> dict[str, Any]:
    body = {name: _only(fields.getlist(name), name) for name in fields}
    if "metadata" in body:
        body["metadata"] = _json(body["metadata"])
    uploaded = [(name, file) for name, group in files.lists() for file in group]
    if uploaded and (len(uploaded) > 1 or uploaded[0][0] != "file" or "text" in body):
        raise ParseError("Send one document: a file named file, or a field text.")
    return _file(uploaded[0][1]) | body if uploaded else body


def _only(values: list[str], name: str) -> str:
    if len(values) > 1:
        raise ParseError(f"{name} is given more than once.")
    if REPLACED in values[0]:
        raise ParseError(f"{name} is not UTF-8; or send the document as JSON.")
    return values[0]


def _json(text: str) -> Any:
    try:
        return exactly(text.encode())
    except orjson.JSONDecodeError as error:
        raise ParseError("metadata is not JSON.") from error


def _file(file: UploadedFile[Any]) -> dict[str, Any]:
    """Return the fields that a file gives: its text, name and type."""
    name, content_type = file.name or "", file.content_type or ""
    if content_type in UNKNOWN_TYPES:
        suffix = PurePath(name).suffix.lower()
        content_type = TYPES_BY_SUFFIX.get(suffix, PLAIN)
    try:
        text = file.read().decode()
    except UnicodeDecodeError as error:
        raise ParseError("The file is not UTF-8 text.") from error
    return {"text": text, "title": name, "content_type": content_type}


class _InMemory(FileUploadHandler):
    """Keeps a file in memory and refuses it as soon as it is too large."""

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._content = bytearray()

    def receive_data_chunk(self, raw_data: bytes, _: int) -> None:
        self._content += raw_data
        if len(self._content) > settings.GATEWAY_INGEST_MAX_BYTES:
            raise PayloadTooLargeError(
                f"The file is over {settings.GATEWAY_INGEST_MAX_BYTES} bytes."
            )

    def file_complete(self, _: int) -> UploadedFile[bytes]:
        return SimpleUploadedFile(
            self.file_name or "", bytes(self._content), self.content_type or ""
        )
