"""Every page of docs/ is in the index, and every link of every page leads somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.samples import DOCS

PAGES = sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "adr")
PAGES.remove(DOCS / "README.md")
DECISIONS = sorted(DOCS.glob("adr/[0-9]*.md"))
DECISION = re.compile(
    r"# (?P<title>.+)\n\n- Number: (?P<number>\d{4})\n- Date: (?P<date>\d{4}-\d\d-\d\d)\n"
    r"- Status: (?P<status>Accepted|Proposed: not built|Superseded by \d{4})\n\n"
)
LINK = re.compile(r"(?:\]\(|\bsrc(?:set)?=\")(?!https?://|#)([^)#\s\"]+)")
ROOT_PAGES = [
    DOCS.parent / name
    for name in ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")
]


def name(page) -> str:
    return str(page.relative_to(DOCS.parent))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_is_in_the_index(page):
    index = LINK.findall((DOCS / "README.md").read_text())
    assert str(page.relative_to(DOCS)) in index


@pytest.mark.parametrize(
    "page", [*PAGES, *DECISIONS, *DOCS.glob("**/README.md"), *ROOT_PAGES], ids=name
)
def test_a_link_leads_somewhere(page):
    missing = [
        link
        for link in LINK.findall(page.read_text())
        if not (page.parent / link).exists()
    ]
    assert missing == []


def test_the_index_of_decisions_repeats_what_each_says_of_itself():
    rows = []
    for page in DECISIONS:
        decision = DECISION.match(page.read_text())
        assert decision, page.name
        number, title, date, status = decision.group(
            "number", "title", "date", "status"
        )
        assert page.name.startswith(f"{number}-")
        rows.append(f"| {number} | [{title}]({page.name}) | {date} | {status} |")
    index = (DOCS / "adr" / "README.md").read_text()
    assert sorted(re.findall(r"^\| \d.+$", index, re.MULTILINE)) == rows
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert numbers == [*range(1, len(numbers) + 1)]
