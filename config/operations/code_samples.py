"""Code samples of the API reference in four languages, made from the examples of requests.

A template of `templates/code_samples` for each language is the only place that knows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import Any
from urllib.parse import quote, urlencode

from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

BASE = "https://signpost.example"
LANGUAGES = {
    "curl": "curl",
    "python": "Python",
    "typescript": "TypeScript",
    "go": "Go",
}
BEARERS = {"recordingBearer", "gatewayKey", "metricsToken"}
FORM = "application/x-www-form-urlencoded"
# Of JSON, at the end of a line: not in a text.
CONSTANT = re.compile(r"\b(?:true|false|null)(?=,?$)", re.MULTILINE)


def add_code_samples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add `x-codeSamples` to the operations for programs (a drf-spectacular hook)."""
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            if not _is_page(operation):
                operation["x-codeSamples"] = [*_samples(method, path, operation)]
    return result


def _is_page(operation: Mapping[str, Any]) -> bool:
    return any(
        "text/html" in response.get("content", {})
        for response in operation["responses"].values()
    )


def _samples(
    method: str, path: str, operation: Mapping[str, Any]
) -> Iterator[dict[str, str]]:
    request = {
        "method": method.upper(),
        "url": BASE + _target(path, operation.get("parameters", ())),
        "token": any(BEARERS & one.keys() for one in operation["security"]),
    }
    bodies = list(_bodies(operation)) or [{}]
    for lang, label in LANGUAGES.items():
        for body in bodies:
            context = request | body
            context["headers"] = context["token"] or "body" in context
            # The samples are programs, and hold nothing that a stranger sent.
            safe = {
                name: mark_safe(value) if isinstance(value, str) else value  # noqa: S308
                for name, value in context.items()
            }
            source = render_to_string(f"code_samples/{lang}.txt", safe).strip()
            name = f"{label}, stream" if body.get("stream") else label
            yield {"lang": lang, "label": name, "source": source + "\n"}


def _target(path: str, parameters: Any) -> str:
    """Return the path and query with the examples of what is required."""
    query = {}
    for parameter in parameters:
        schema = parameter["schema"]
        value = parameter.get("example") or next(iter(schema.get("enum", ())), "")
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", quote(value))
        elif parameter.get("required"):
            query[parameter["name"]] = value
    return f"{path}?{urlencode(query)}" if query else path


def _bodies(operation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the templates need of each example of the body."""
    contents = operation.get("requestBody", {}).get("content", {})
    for media_type, content in contents.items():
        for example in content.get("examples", {}).values():
            fields = example["value"]
            is_form = media_type == FORM
            shape = json.dumps(fields, indent=4)
            body = urlencode(fields) if is_form else json.dumps(fields, indent=2)
            yield {
                "media_type": media_type,
                "form": is_form,
                "stream": fields.get("stream", False),
                "body": body,
                "shell_body": body.replace("'", r"'\''"),
                "go_body": json.dumps(body) if is_form or "`" in body else f"`{body}`",
                "python_fields": _indented(CONSTANT.sub(_python, shape), 4),
                "script_fields": _indented(json.dumps(fields, indent=2), 2),
            }


def _python(constant: re.Match[str]) -> str:
    return str(json.loads(constant[0]))


def _indented(text: str, spaces: int) -> str:
    return indent(text, spaces * " ").lstrip()
