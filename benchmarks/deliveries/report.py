"""The report of the deliveries benchmark: tables as Markdown, figures as JSON, and targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.results import about


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is to be reached."""

    what: str
    wanted: str
    measured: str
    met: bool


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

    command: str
    figures: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    # What `--save` writes.
    saved: dict[str, dict[str, dict[str, float | str]]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def at_least(self, what: str, measured: float, wanted: float, unit: str) -> None:
        text = f"{measured:.2f}" if unit == "" else f"{measured:.1f} {unit}"
        target = Target(what, f"≥ {wanted:g} {unit}".strip(), text, measured >= wanted)
        self.targets.append(target)

    def at_most(self, what: str, measured: float, wanted: float, unit: str) -> None:
        text = f"{measured:.2f} {unit}" if unit else f"{measured:g}"
        target = Target(what, f"≤ {wanted:g} {unit}".strip(), text, measured <= wanted)
        self.targets.append(target)

    def as_json(self) -> dict[str, Any]:
        return {
            **about(),
            "command": self.command,
            "parts": self.figures,
            "targets": [asdict(target) for target in self.targets],
            "skipped": self.skipped,
        }

    def as_markdown(self) -> Iterator[str]:
        facts = about()
        yield f"{facts['at']}, commit {facts['commit']}, {facts['machine']}; `{self.command}`"
        yield ""
        for table in (*self.tables, self._met()):
            yield from table.lines()
        for what, reason in self.skipped.items():
            yield f"Not measured: {what} ({reason})."

    def _met(self) -> Table:
        rows = [
            (it.what, it.wanted, it.measured, "yes" if it.met else "**no**")
            for it in self.targets
        ]
        return Table("Targets", ("what", "wanted", "measured", "met"), rows)
