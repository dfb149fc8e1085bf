"""Whether a response is what docs/api/openapi.json says, and nothing more.

A property that the document does not name is a fault: an object that holds others says so with
`additionalProperties`.
"""

import re
from functools import cache
from typing import Any

import orjson
import requests
from django.conf import settings
from django.test import Client
from jsonschema import Draft202012Validator, FormatChecker

from gateway import json

DOCUMENT = orjson.loads((settings.BASE_DIR / "docs/api/openapi.json").read_bytes())
# UTC with microseconds and Z, everywhere in recording and gateway.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
FORMATS = FormatChecker(("date",))


@FORMATS.checks("date-time")
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or bool(TIME.fullmatch(value))


def closed(schema: Any) -> Any:
    """Return a schema whose objects have no properties but the named ones."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {key: closed(value) for key, value in schema.items()}
    is_open = "additionalProperties" in schema or "properties" not in schema
    if schema.get("type") == "object" and not is_open:
        copy["additionalProperties"] = False
    return copy


COMPONENTS = closed(DOCUMENT["components"])


def _pattern(template: str) -> re.Pattern[str]:
    last = re.sub(r"\\\{path\\\}$", ".+", re.escape(template))
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", last))


# Addresses without parameters first: `/v1/webhooks/subscriptions` is no endpoint's.
TEMPLATES = {template: _pattern(template) for template in DOCUMENT["paths"]}
ORDERED = sorted(TEMPLATES, key=lambda template: (template.count("{"), template))


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """Return what the document says of a request; None if it says nothing."""
    path = path.partition("?")[0]
    for template in ORDERED:
        if TEMPLATES[template].fullmatch(path):
            operation: dict[str, Any] | None = DOCUMENT["paths"][template].get(
                method.lower()
            )
            return operation
    return None


def assert_documented(
    method: str, path: str, status: int, content_type: str, body: bytes
) -> None:
    """Compare a response with the document, if that has the address and the method."""
    operation = operation_of(method, path)
    if operation is None:
        return
    where = f"{method} {path} {status}"
    described = operation["responses"].get(str(status))
    assert described, f"{where}: the document does not name this status"
    content = described.get("content")
    if not content:
        assert not body, f"{where}: the document names no body"
        return
    media_type = content_type.partition(";")[0]
    assert media_type in content, f"{where}: the document does not name {media_type}"
    schema = content[media_type]["schema"]
    if media_type == "application/json":
        assert_valid(json.loads(body), schema, where)
    elif media_type == "text/event-stream":
        for event in _events(body):
            assert_valid({"data": event}, schema, where)
            data = schema["properties"]["data"]
            data = data.get("anyOf", [data])[0]
            if event != "[DONE]" and "contentSchema" in data:
                assert_valid(json.loads(event.encode()), data["contentSchema"], where)


def assert_response_documented(response: requests.Response) -> None:
    request, kind = response.request, response.headers.get("Content-Type", "")
    assert_documented(
        str(request.method),
        request.path_url,
        response.status_code,
        kind,
        response.content,
    )


class DocumentedClient(Client):
    """A test client that compares each response with the document."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        assert_documented(
            request["REQUEST_METHOD"],
            request["PATH_INFO"],
            response.status_code,
            response.get("Content-Type", ""),
            response.getvalue(),
        )
        return response


def assert_valid(value: Any, schema: Any, where: str = "") -> None:
    """Compare a value with a schema of the document."""
    faults = list(_validator(orjson.dumps(schema)).iter_errors(value))
    texts = [f"{fault.json_path}: {fault.message}" for fault in faults]
    assert not texts, f"{where}: {texts}"


@cache
def _validator(schema: bytes) -> Draft202012Validator:
    whole = closed(orjson.loads(schema)) | {"components": COMPONENTS}
    return Draft202012Validator(whole, format_checker=FORMATS)


def _events(body: bytes) -> list[str]:
    """Return the data of each event; comments are no events."""
    lines = body.decode().splitlines()
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
