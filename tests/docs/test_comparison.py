"""The comparison of README.md: its libraries exist."""

from __future__ import annotations

from tests.docs.samples import ROOT

ROWS = {
    cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
    for line in (ROOT / "README.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := line.split("|")) > 4
}


def test_every_client_package_is_named():
    names = {"python": "Python", "typescript": "TypeScript"}
    folders = {folder.name for folder in (ROOT / "clients").iterdir()}
    assert folders == names.keys()
    [own, *_] = ROWS["client libraries"]
    assert [name for name in names.values() if name not in own] == []
