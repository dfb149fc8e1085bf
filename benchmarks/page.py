"""Write the figures of docs/benchmarks/results.json into the pages that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import BaseCommand

from benchmarks import results

PAGE = "docs/benchmarks.md"
SIZING = "docs/operations.md"
# `<!-- results: SECTION.TABLE -->`, and what is written up to `<!-- end of results -->`.
MARKED = re.compile(
    r"(?<=<!-- results: )(\w+)\.(\w+) -->\n.*?(?=<!-- end of results -->)", re.DOTALL
)


def cell(row: str, column: int) -> str:
    """Return the pattern of a figure in a table; the first column after the row's name is 1."""
    return rf"\| {re.escape(row)} \|(?:[^|\n]*\|){{{column - 1}}} ([\d,.]+) \|"


class Quotation(NamedTuple):
    """A figure on another page: group 1 of `pattern` is the cell of a saved table."""

    file: str
    pattern: str
    section: str
    table: str
    row: str
    column: str


_DELIVERIES = ("deliveries", "peers", "deliveries/s")
_DISPATCHERS = ("deliveries", "limits", "1 KB, deliveries/s")
_CHAT = ("chat", "peers", "requests/s, 16 at once")
_POSTGRES = "Signpost, PostgreSQL, 1 dispatcher"
# The place of a figure (file, row, column), its table, and the row there.
_QUOTED = (
    (("README.md", "deliveries/s, 1 KB", 1), _DELIVERIES, _POSTGRES),
    (("README.md", "deliveries/s, 1 KB", 2), _DELIVERIES, "pg-boss + undici"),
    (("README.md", "deliveries/s, 1 KB", 3), _DELIVERIES, "BullMQ + undici"),
    (("README.md", "deliveries/s, 1 KB", 4), _DELIVERIES, "graphile-worker + undici"),
    (("README.md", "deliveries/s, 1 KB", 5), _DELIVERIES, "Celery, gevent"),
    (("README.md", "chat requests/s, 16 clients", 1), _CHAT, "signpost"),
    (("README.md", "chat requests/s, 16 clients", 2), _CHAT, "smg"),
    (("README.md", "chat requests/s, 16 clients", 3), _CHAT, "ferrogw"),
    (("README.md", "chat requests/s, 16 clients", 4), _CHAT, "portkey"),
    (("README.md", "chat requests/s, 16 clients", 5), _CHAT, "litellm"),
    (
        (SIZING, "deliveries of 1 KB a second, SQLite, one dispatcher", 1),
        _DISPATCHERS,
        "Signpost, SQLite, 1 dispatcher",
    ),
    (
        (SIZING, "deliveries of 1 KB a second, PostgreSQL, one dispatcher", 1),
        _DISPATCHERS,
        _POSTGRES,
    ),
    (
        (SIZING, "deliveries of 1 KB a second, PostgreSQL, two dispatchers", 1),
        _DISPATCHERS,
        "Signpost, PostgreSQL, 2 dispatchers",
    ),
    (
        (SIZING, "chat requests a second, one web process, 16 clients", 1),
        _CHAT,
        "signpost",
    ),
    (
        (SIZING, "memory of a web process with 1,000 open streams, MB", 1),
        ("chat", "streams", "memory, MB"),
        "signpost",
    ),
)
QUOTATIONS = tuple(
    Quotation(file, cell(row, column), section, table, name, figure)
    for (file, row, column), (section, table, figure), name in _QUOTED
)


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        for file, text in pages().items():
            (settings.BASE_DIR / file).write_text(text)


def pages() -> dict[str, str]:
    """Return the pages, by path, with the figures of the last runs. Raises LookupError."""
    saved = results.load()
    texts = {PAGE: MARKED.sub(lambda found: marked(saved, found), _read(PAGE))}
    for quotation in QUOTATIONS:
        text = texts.get(quotation.file) or _read(quotation.file)
        texts[quotation.file] = quoted(saved, quotation, text)
    return texts


def _read(file: str) -> str:
    return (settings.BASE_DIR / file).read_text()


def marked(saved: Mapping[str, Any], found: re.Match[str]) -> str:
    """Return a marked table or the description of a run, with its marks."""
    section, table = saved[found[1]], found[2]
    lines = (
        _run(section)
        if table == "run"
        else results.as_markdown(section["tables"][table])
    )
    return f"{found[1]}.{table} -->\n\n" + "\n".join(lines) + "\n\n"


def _run(section: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"Run of {section['at']}, commit {section['commit']}, {section['machine']}: "
        f"`{section['command']}`."
    )
    if section["versions"]:
        yield ""
        named = [f"{name} {version}" for name, version in section["versions"].items()]
        yield f"Versions: {', '.join(named)}."
    for name, reason in section["left_out"].items():
        yield ""
        yield f"Left out: {name} ({reason})."


def quoted(saved: Mapping[str, Any], quotation: Quotation, text: str) -> str:
    """Return a page with the saved figure. Raises LookupError if the page has no such sentence."""
    found = re.search(quotation.pattern, text)
    if found is None:
        raise LookupError(f"{quotation.file} has no {quotation.pattern!r}")
    row = saved[quotation.section]["tables"][quotation.table][quotation.row]
    start, end = found.span(1)
    return text[:start] + results.shown(row[quotation.column]) + text[end:]
