"""The list of attacks names tests that exist; the table of clients, versions that are installed."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

from tests.docs.samples import DOCS

TESTS = Path(__file__).resolve().parent.parent
FILES = [
    file
    for part in ("recording", "browser", "products", "gateway/portal")
    for file in (TESTS / part).rglob("test_*.py")
]
CLIENT = re.compile(r"^\| `([^`]+)` \((Python|Node)\) \| ([0-9.]+) \|", re.MULTILINE)


def test_every_named_test_exists():
    named = set(re.findall(r"`(test_\w+)(?:…)?`", (DOCS / "security.md").read_text()))
    there = "".join(file.read_text() for file in FILES)
    assert len(named) > 25
    assert not {name for name in named if f"def {name}" not in there}


def test_every_named_file_exists():
    named = set(re.findall(r"`(test_\w+\.py)`", (DOCS / "security.md").read_text()))
    assert not named - {file.name for file in FILES}


def test_the_clients_that_were_tried_are_those_of_the_suite():
    lock = json.loads((TESTS / "recording/oauth/node/package-lock.json").read_text())
    there = {
        name.removeprefix("node_modules/"): package.get("version")
        for name, package in lock["packages"].items()
    }
    clients = CLIENT.findall((DOCS / "oauth.md").read_text())
    assert len(clients) == 6
    for name, language, version in clients:
        installed = metadata.version(name) if language == "Python" else there[name]
        assert version == installed, name
