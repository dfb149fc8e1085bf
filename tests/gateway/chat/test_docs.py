"""docs/chat.md names the tests of the error tables: they are there."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

ROWS = re.findall(
    r"^\| (?:synchronous|…|before|after|the error chunk).*\| (`test_.*`) \|$",
    (settings.BASE_DIR / "docs" / "chat.md").read_text(),
    re.MULTILINE,
)


def test_the_table_of_errors_names_tests_that_are_there():
    code = (Path(__file__).parent / "test_errors.py").read_text()
    for name in re.findall(r"test_\w+", " ".join(ROWS)):
        assert f"def {name}(" in code


def test_every_row_of_the_tables_is_named():
    assert len(ROWS) == 14
