"""HTML summaries as Markdown: what is text in the HTML stays text, addresses lead to the web alone."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import nh3
from markdownify import MarkdownConverter

# Of a page, and of its tags, entities and no-break spaces: the libraries take longer per mark.
LONGEST, MOST_MARKS = 524_288, 4_000
# Of elements in one another; the work of markdownify grows with length times depth …
DEEPEST, MOST_WORK = 60, 8_000_000
# … and with the square of a run of white space.
GAP = re.compile(r"\s{2000}")
ATTRIBUTES = {"a": {"href"}, "img": {"src", "alt"}}
WITHOUT_TEXT = {"script", "style", "title", "template", "audio", "video", "iframe"}
SCHEMES = {"http", "https", "mailto"}
TAG = re.compile(r"<(/?)(?!(?:area|br|col|hr|img|wbr)\b)[a-z]")  # that has an end

# What CommonMark reads as markup, wherever it is in a text …
MARKUP = re.compile(
    r"""\\(?=[!-/:-@\[-`{-~]|$)   # an escape
      | [*`](?!\s) | (?<!\s)[*`]  # emphasis and code
      | (?<![^\W_])_ | _(?![^\W_])
      | ~(?=~) | (?<=~)~
      | [\[\]]
      | <(?=[a-zA-Z/!?])
      | &(?=\#?\w{1,31};)
    """,
    re.VERBOSE,
)
# … and where a line begins, or its other half is in a text before.
LINE_START = re.compile(
    r"^(\s*)(\#{1,6}(?=\s|$)|[-+*](?=\s|$)|>|=+\s*$|-+\s*$|[.)](?=\s|$))", re.MULTILINE
)
BINARY = re.compile(r"[\x00-\x08\x0e-\x1f]")
UNSAFE = re.compile(r"[^!#$%&'*+,\-./:;=?@\[\]~\w]")
LIST_START = re.compile(r"^(\s*\d{1,9})([.)])(?=\s|$)", re.MULTILINE)


def from_html(source: str) -> str | None:
    """Return a page as Markdown; None if it is too large or deep, has no text, or fails to convert."""
    marks = sum(map(source.count, "<&\xa0"))
    if len(source) > LONGEST or marks > MOST_MARKS or BINARY.search(source):
        return None
    clean = nh3.clean(
        source,
        attributes=ATTRIBUTES,
        clean_content_tags=WITHOUT_TEXT,
        url_schemes=SCHEMES,
        link_rel=None,
    )
    depth = _depth(clean)
    if depth > DEEPEST or depth * len(clean) > MOST_WORK or GAP.search(clean):
        return None
    content = Converter(bullets="-", heading_style="atx").convert(clean).strip()
    return f"{content}\n" if content else None


def _depth(clean: str) -> int:
    """Return how deep elements lie in one another on a page where each has its end."""
    depth = deepest = 0
    for end in TAG.findall(clean):
        depth += -1 if end else 1
        deepest = max(deepest, depth)
    return deepest


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown that shows it."""
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Escape what would be markup, and nothing else: `snake_case & co.` stays as it is."""
    text = MARKUP.sub(r"\\\g<0>", text)
    text = LINE_START.sub(r"\1\\\2", text)
    return LIST_START.sub(r"\1\\\2", text)


class Converter(MarkdownConverter):
    """markdownify, with minimal escapes and without ways out of an address or a block of code."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        if not text:
            return ""
        text = _escaped(text)
        return text.replace("|", "\\|") if parent_tags & {"td", "th"} else text

    def process_text(self, el: Any, parent_tags: set[str] | None = None) -> str:
        text: str = super().process_text(el, parent_tags)  # type: ignore[misc]
        # Before a link, it would make an image of it.
        is_link_next = getattr(el.next_sibling, "name", "") == "a"
        return f"{text[:-1]}\\!" if is_link_next and text.endswith("!") else text

    def convert_a(self, el: Any, text: str, parent_tags: set[str]) -> str:
        if el.get("href"):
            el["href"] = _address(el["href"])
        return str(super().convert_a(el, text, parent_tags))  # type: ignore[misc]

    def convert_img(self, el: Any, text: str, parent_tags: set[str]) -> str:
        alt = self.escape(" ".join(el.get("alt", "").split()), parent_tags)
        if not el.get("src"):
            return alt
        return f"![{alt}]({_address(el['src'])})"

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
        if not text.strip():
            return ""
        longest = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, longest + 1)
        content = text.strip("\n")
        return f"\n\n{fence}\n{content}\n{fence}\n\n"


def _address(url: str) -> str:
    """Return an address without what ends it in Markdown."""
    return UNSAFE.sub(lambda match: quote(match[0]), url.strip())
