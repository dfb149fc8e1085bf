"""The guides of docs/ as pages of this instance: docs/chat.md is /guides/chat."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.token import Token

ROOT: Path = settings.BASE_DIR
INDEX = "docs/README.md"
# What the guides link to outside of docs/, and pages that an instance has in another form.
ADDRESSES = {
    INDEX: "/guides/",
    "README.md": "/guides/start",
    "CHANGELOG.md": "/guides/changelog",
    "CONTRIBUTING.md": "/guides/contributing",
    "CODE_OF_CONDUCT.md": "/guides/code-of-conduct",
    "SECURITY.md": "/guides/security-policy",
    "clients/python/README.md": "/guides/clients/python",
    "clients/typescript/README.md": "/guides/clients/typescript",
    "gateway/sample.yaml": "/guides/sample.yaml",
    "docs/api/rest.md": "/docs",
    "docs/api/openapi.json": "/openapi.json",
    "docs/api/graphql.md": "/graphql",
}
FOLDERS = re.compile("^docs/(guides/)?")
# A picture for light and for dark, as GitHub shows it. A guide shows the light one.
PICTURE = re.compile(r'<picture>\n<source .+>\n<img alt="(.+)" src="(.+)">\n</picture>')
NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")


class Guide(NamedTuple):
    title: str
    body: str


@require_safe
@cache_control(no_cache=True)
def guide(request: HttpRequest, **_: str) -> HttpResponse:
    """Show a guide, or return a file that one links to."""
    path = _paths().get(request.path)
    if path is None or not (ROOT / path).is_file():
        raise Http404
    if path.endswith(".md"):
        return render(request, "guide.html", {"guide": read(path), "path": path})
    kind = guess_type(path)[0] or ""
    # As text: a browser shows a sample, and runs none.
    shown = kind if kind.startswith("image/") else "text/plain; charset=utf-8"
    return HttpResponse((ROOT / path).read_bytes(), content_type=shown)


@cache
def _addresses() -> Mapping[str, str]:
    """Return the address of each file that the guides may link to."""
    files = (path for path in (ROOT / "docs").rglob("*") if path.is_file())
    paths = (path.relative_to(ROOT).as_posix() for path in files)
    below = {
        path: "/guides/" + FOLDERS.sub("", path).removesuffix(".md")
        for path in paths
        if not path.startswith("docs/site/")
    }
    return {**below, **ADDRESSES}


@cache
def _paths() -> Mapping[str, str]:
    return {address: path for path, address in _addresses().items()}


@cache
def read(path: str) -> Guide:
    """Return a guide as HTML; its files do not change while a process runs."""
    text = PICTURE.sub(r"![\1](\2)", (ROOT / path).read_text("utf-8"))
    tokens = MARKDOWN.parse(text)
    title = next(
        following.content
        for token, following in pairwise(tokens)
        if token.type == "heading_open"
    )
    _name_headings(tokens)
    for token in _all(tokens):
        token.attrs.pop("style", None)  # of a cell: the page's policy has no room
        for attribute in ("href", "src"):
            if target := token.attrGet(attribute):
                token.attrSet(attribute, _address(path, str(target)))
    return Guide(title, MARKDOWN.renderer.render(tokens, MARKDOWN.options, {}))


def _all(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()


def _address(path: str, target: str) -> str:
    """Return where a link of a guide leads on this instance."""
    file, hash_mark, anchor = target.partition("#")
    if not file or ":" in file:
        return target
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
    return _addresses().get(linked, file) + hash_mark + anchor


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give each heading the id to which GitHub's links lead."""
    seen: dict[str, int] = {}
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            plain = "".join(
                child.content
                for child in following.children or ()
                if child.type in {"text", "code_inline"}
            )
            slug = NOT_IN_A_SLUG.sub("", plain.lower()).replace(" ", "-")
            number = seen[slug] = seen.get(slug, -1) + 1
            token.attrSet("id", f"{slug}-{number}" if number else slug)


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """Return a block of code that scrolls by keyboard too."""
    return f'<pre tabindex="0"><code>{escapeHtml(tokens[index].content)}</code></pre>\n'


MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
MARKDOWN.add_render_rule("fence", _fence)
MARKDOWN.add_render_rule(
    "table_open", lambda *_: '<div class="scroll" tabindex="0">\n<table>\n'
)
MARKDOWN.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
