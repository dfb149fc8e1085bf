"""Tables of figures as Markdown, and what they were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings

PEERS = settings.BASE_DIR / "var" / "bench-peers"

Table = Mapping[str, Mapping[str, float | str]]


def called() -> str:
    """Return the command line of this process, without addresses of servers."""
    words = [re.sub("://.*", "://…", word) for word in sys.argv[1:]]
    return " ".join(["python -m benchmarks", *words])


def about() -> str:
    """Return when, where and of which commit this is, and the command."""
    at = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{os.cpu_count()} x {_processor()}, {platform.system()}"
    python = platform.python_version()
    return f"{at}, commit {_commit()}, {machine}, Python {python}; `{called()}`"


def _commit() -> str:
    """Return the commit, marked if files other than the documentation differ."""
    commit = _git("rev-parse", "--short", "HEAD")
    return (
        f"{commit}-dirty" if _git("status", "--porcelain", "--", ":!docs") else commit
    )


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(settings.BASE_DIR), *arguments)
    return subprocess.check_output(command, text=True).strip()  # noqa: S603


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.partition(":")[2].strip() for line in lines if "model name" in line)
    return next(names, platform.machine())


def as_markdown(rows: Table) -> Iterator[str]:
    """Return the lines of a table."""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    yield f"| | {' | '.join(columns)} |"
    yield "|---|" + "---:|" * len(columns)
    for name, row in rows.items():
        yield f"| {name} | {' | '.join(shown(row.get(each, '')) for each in columns)} |"


def shown(value: float | str) -> str:
    """Return a figure as the pages write it, with three digits that count."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def titled(title: str, rows: Table) -> str:
    """Return a table with its heading."""
    return "\n".join(["", f"### {title}", "", *as_markdown(rows)])


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
