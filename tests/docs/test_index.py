"""Every page of docs/ is in the index, and every link of every page leads somewhere."""

import re

import pytest

from tests.docs.samples import DOCS

PAGES = sorted(DOCS.rglob("*.md"))
PAGES.remove(DOCS / "README.md")
LINK = re.compile(r"(?:\]\(|\bsrc(?:set)?=\")(?!https?://|#)([^)#\s\"]+)")
ROOT_PAGES = sorted(DOCS.parent.glob("*.md"))


def name(page) -> str:
    return str(page.relative_to(DOCS.parent))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_is_in_the_index(page):
    index = LINK.findall((DOCS / "README.md").read_text())
    assert str(page.relative_to(DOCS)) in index


@pytest.mark.parametrize("page", [*PAGES, DOCS / "README.md", *ROOT_PAGES], ids=name)
def test_a_link_leads_somewhere(page):
    missing = [
        link
        for link in LINK.findall(page.read_text())
        if not (page.parent / link).exists()
    ]
    assert missing == []
