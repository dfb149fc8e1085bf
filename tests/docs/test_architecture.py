"""The page about the architecture names files that exist."""

from __future__ import annotations

import re

from tests.docs.samples import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text()
FILES = re.findall(r"`([\w/]+/[\w/.-]*\.\w+)`", PAGE)


def test_every_named_file_exists():
    assert [name for name in FILES if not (ROOT / name).is_file()] == []


def test_the_page_follows_five_paths_and_names_thirty_places():
    places = PAGE.partition("## Places of each concern")[2]
    assert places.count("\n| ") - 1 >= 30
    assert len(re.findall(r"^1\. ", PAGE, re.MULTILINE)) == 5
    assert len(FILES) > 80
