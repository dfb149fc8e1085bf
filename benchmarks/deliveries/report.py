"""The report of the deliveries benchmark: its tables, and what could not be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.results import about


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def lines(self) -> Iterator[str]:
        """Return the table as Markdown."""
        yield f"### {self.title}"
        yield ""
        yield f"| {' | '.join(self.columns)} |"
        yield "|---|" + "---:|" * (len(self.columns) - 1)
        for row in self.rows:
            yield f"| {' | '.join(row)} |"
        if self.note:
            yield ""
            yield self.note
        yield ""


@dataclass(slots=True)
class Report:
    """All that one run measured."""

    tables: list[Table] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    def as_markdown(self) -> Iterator[str]:
        yield about()
        yield ""
        for table in self.tables:
            yield from table.lines()
        for what, reason in self.skipped.items():
            yield f"Not measured: {what} ({reason})."
