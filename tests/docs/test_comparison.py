"""The comparison of README.md: its figures are measured, and its libraries exist."""

from __future__ import annotations

import re

from tests.docs.samples import DOCS, ROOT

ROWS = {
    cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
    for line in (ROOT / "README.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := line.split("|")) > 4
}
BENCHMARKS = (DOCS / "benchmarks.md").read_text()


def test_the_figures_are_of_one_table_of_the_benchmarks():
    tables = [set(re.findall(r"[\d,.]+", table)) for table in BENCHMARKS.split("\n\n")]
    compared = [cells for name, cells in ROWS.items() if "/s, " in name]
    assert len(compared) == 2
    for cells in compared:
        figures = {cell for cell in cells if cell[0].isdigit()}
        assert len(figures) == 2
        assert [table for table in tables if figures <= table], figures


def test_every_client_package_is_named():
    names = {"python": "Python", "typescript": "TypeScript"}
    folders = {folder.name for folder in (ROOT / "clients").iterdir()}
    assert folders == names.keys()
    [own, *_] = ROWS["client libraries"]
    assert [name for name in names.values() if name not in own] == []
