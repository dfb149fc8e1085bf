"""Every page names the figures of the last saved run."""

from __future__ import annotations

import re

from benchmarks import page, results
from tests.docs.samples import ROOT


def test_pages_are_what_the_command_writes():
    written = page.pages()
    assert {"README.md", "docs/benchmarks.md", "docs/operations.md"} <= set(written)
    for file, text in written.items():
        assert (ROOT / file).read_text() == text, (
            f"run: python -m benchmarks page ({file})"
        )


def test_every_saved_table_is_on_the_page():
    marked = set(re.findall(r"<!-- results: (\S+) -->", (ROOT / page.PAGE).read_text()))
    assert marked == {
        f"{name}.{table}"
        for name, section in results.load().items()
        for table in ("run", *section["tables"])
    }


def test_one_machine_made_all_figures():
    assert len({section["machine"] for section in results.load().values()}) == 1
