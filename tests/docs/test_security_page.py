"""The list of attacks names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.samples import DOCS

TESTS = Path(__file__).resolve().parent.parent / "oauth"


def test_every_named_test_exists():
    named = set(re.findall(r"`(test_\w+)(?:…)?`", (DOCS / "security.md").read_text()))
    there = "".join(file.read_text() for file in TESTS.glob("test_*.py"))
    assert len(named) > 25
    assert not {name for name in named if f"def {name}" not in there}


def test_every_named_file_exists():
    named = re.findall(r"`(test_\w+\.py)`", (DOCS / "security.md").read_text())
    assert not {name for name in named if not (TESTS / name).exists()}
