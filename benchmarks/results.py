"""What the documentation names: the last saved run of each benchmark, in one file.

A benchmark with `--save` replaces its own section of docs/benchmarks/results.json. A table is
`{row: {column: number or text}}`; `python -m benchmarks page` writes the tables into the pages.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from django.conf import settings

FILE = settings.BASE_DIR / "docs" / "benchmarks" / "results.json"
PEERS = settings.BASE_DIR / "var" / "bench-peers"

Table = Mapping[str, Mapping[str, float | str]]


def add_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--save",
        action="store_true",
        help=f"write the figures into {FILE.relative_to(settings.BASE_DIR)}",
    )


def load() -> dict[str, Any]:
    """Return the saved sections by name; none before the first saved run."""
    if not FILE.exists():
        return {}
    sections: dict[str, Any] = json.loads(FILE.read_text())
    return sections


def called() -> str:
    """Return the command line of this process, without addresses of servers."""
    words = [re.sub("://.*", "://…", word) for word in sys.argv[1:] if word != "--ask"]
    return " ".join(["python -m benchmarks", *words])


def save(
    name: str,
    tables: Mapping[str, Table],
    *,
    versions: Mapping[str, str] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> None:
    """Replace a section. `left_out` gives the reason why a peer was not measured."""
    section = {
        **about(),
        "command": called(),
        "versions": versions or {},
        "left_out": left_out or {},
        "tables": tables,
    }
    sections = load() | {name: section}
    FILE.write_text(json.dumps(sections, indent=1, ensure_ascii=False) + "\n")


def about() -> dict[str, str]:
    """Return when and where this is, and of which commit."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "machine": f"{os.cpu_count()} x {_processor()}, {platform.system()}, "
        f"Python {platform.python_version()}",
    }


def _commit() -> str:
    """Return the commit, marked if files other than the documentation differ; an image has no git."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--", ":!docs")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(*arguments: str) -> str:
    command = ("git", "-C", str(settings.BASE_DIR), *arguments)
    return subprocess.check_output(command, text=True).strip()  # noqa: S603


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
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


def python_versions(*packages: str, under: Path | None = None) -> dict[str, str]:
    """Return the versions of installed packages, of this environment or of one below PEERS."""
    folders = list(map(str, under.glob("lib/*/site-packages"))) if under else sys.path
    installed = metadata.distributions(path=folders)
    found = {each.name.lower(): each.version for each in installed}
    return {name: found[name.lower()] for name in packages if name.lower() in found}


def lines_of(*files: Path) -> int:
    """Return the lines of code in files, without empty lines, comments and docstrings of a line."""
    lines = (line.strip() for file in files for line in file.read_text().splitlines())
    return sum(1 for line in lines if line and not line.startswith(_NO_CODE))


_NO_CODE = ("#", "//", "/*", "*", '"""')
