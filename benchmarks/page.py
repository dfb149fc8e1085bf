"""Write the figures of docs/benchmarks/results.json into the pages that name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.core.management.base import BaseCommand

from benchmarks import results

PAGE = "docs/benchmarks.md"
# `<!-- results: SECTION.TABLE -->`, and what is written up to `<!-- end of results -->`.
MARKED = re.compile(
    r"(?<=<!-- results: )(\w+)\.(\w+) -->\n.*?(?=<!-- end of results -->)", re.DOTALL
)


class Quotation(NamedTuple):
    """A figure on another page: group 1 of `pattern` is the cell of a saved table."""

    file: str
    pattern: str
    section: str
    table: str
    row: str
    column: str


QUOTATIONS: tuple[Quotation, ...] = ()


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
        f"Run of {section['at']}, commit {section['commit']}, {section['machine']}, "
        f"load average {section['load']}: `{section['command']}`."
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
