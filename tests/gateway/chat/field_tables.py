"""Tables of the fields of requests: what a translation makes of each, as a page of the documentation says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from django.conf import settings

from gateway.chat.errors import ChatError, UnsupportedRequestError

# What stands for a request without optional fields.
Sent = Callable[..., dict[str, Any]]
Row = tuple[dict[str, Any], dict[str, Any] | str]
# In every request, or asked for to prove something else.
UNASKED = frozenset({"model", "messages", "system", "max_tokens", "tools"})


def check_row(sent: Sent, rows: Iterable[Row], nothing: Mapping[str, Any]) -> None:
    """Check that requests become what they should, that no field vanishes and none is added."""
    for fields, expected in rows:
        if isinstance(expected, str):
            assert refused(sent, UnsupportedRequestError, fields) == expected
            continue
        body = sent(**fields)
        assert {name: body.get(name) for name in expected} == expected
        if expected is nothing:
            tools = {"tools": body["tools"]} if fields.get("tools") else {}
            assert body == sent() | tools
        assert {*body} <= UNASKED | {*expected, "tool_choice"}


def refused(sent: Sent, kind: type[ChatError], fields: dict[str, Any]) -> str:
    """Return why a request is refused."""
    with pytest.raises(kind) as failure:
        sent(**fields)
    return str(failure.value)


def rows_of_page(heading: str) -> list[str]:
    """Return the fields of the table below a heading of docs/chat.md."""
    page = (settings.BASE_DIR / "docs" / "chat.md").read_text()
    section = page.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \|[^|]+\|[^|]+\|$", section, re.MULTILINE)[1:]
    return [row.replace("`", "") for row in rows]


def named_in(table: Iterable[str]) -> set[str]:
    return set(re.findall(r"\w+", " ".join(table)))
