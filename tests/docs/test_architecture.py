"""The page about the architecture names files that exist, and tests stand where their subject does."""

from __future__ import annotations

import re

from tests.docs.samples import DOCS, ROOT

PAGE = (DOCS / "architecture.md").read_text()
PACKAGES = ("catalog", "config", "gateway", "recording", "webhooks_core")
FILES = re.findall(r"`([\w/]+/[\w/.-]*\.\w+)`", PAGE)


def test_every_named_file_exists():
    assert [name for name in FILES if not (ROOT / name).is_file()] == []


def test_the_page_follows_five_paths_and_names_thirty_places():
    places = PAGE.partition("## Places of each concern")[2]
    assert places.count("\n| ") - 1 >= 30
    assert len(re.findall(r"^1\. ", PAGE, re.MULTILINE)) == 5
    assert len(FILES) > 80


def test_the_tests_of_a_package_are_in_the_folder_of_its_name():
    folders = {
        file.parent.relative_to(ROOT / "tests")
        for package in PACKAGES
        for file in (ROOT / "tests" / package).rglob("*.py")
        if "node_modules" not in file.parts
    }
    assert [str(folder) for folder in folders if not (ROOT / folder).is_dir()] == []


def test_no_file_is_longer_than_400_lines():
    files = [
        file
        for package in (*PACKAGES, "benchmarks", "tests")
        for file in (ROOT / package).rglob("*.py")
        if not {"node_modules", "migrations"} & {*file.parts}
    ]
    lengths = {str(file): file.read_text("utf-8").count("\n") for file in files}
    assert {name: count for name, count in lengths.items() if count > 400} == {}
