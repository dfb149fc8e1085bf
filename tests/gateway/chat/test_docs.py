"""docs/chat.md names the tests of the error tables: they are there."""

from __future__ import annotations

import re

from django.conf import settings

from tests.gateway.chat.core import test_errors

ROWS = re.findall(
    r"^\| (?:synchronous|…|before|after|the error chunk).*\| (`test_.*`) \|$",
    (settings.BASE_DIR / "docs" / "chat.md").read_text(),
    re.MULTILINE,
)


def test_the_table_of_errors_names_tests_that_prove_the_specification():
    for name in re.findall(r"test_\w+", " ".join(ROWS)):
        marks = {item.name for item in getattr(test_errors, name).pytestmark}
        assert "spec" in marks


def test_every_row_of_the_tables_is_named():
    assert len(ROWS) == 14
