"""HTML as Markdown with the same meaning: text that is escaped in the HTML never becomes markup.

html-to-markdown converts. Of the page it sees only elements that Markdown has, without attributes
but for safe addresses; texts are escaped here, where CommonMark would read markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from html_to_markdown import ConversionOptions, convert

LONGEST = 1_048_576  # characters; no summary is longer
MOST_TAGS = 20_000
DEEPEST = 40  # elements inside each other
MOST_GROWTH = 8  # quotes and lists repeat their prefix in each line

CODE = frozenset(("code", "kbd", "pre", "samp"))
CELLS = frozenset(("td", "th"))
INLINE = CODE | {"a", "b", "br", "del", "em", "i", "s", "strike", "strong"}
# The next one of these ends them.
ENDED = CELLS | {"li", "p", "tr"}
BLOCKS = ENDED | {"blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol"}
BLOCKS |= {"table", "tbody", "tfoot", "thead", "ul"}
# As <div>.
OTHER_BLOCKS = frozenset(
    ("address", "article", "aside", "caption", "center", "dd", "details", "dialog")
) | {"div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form"}
OTHER_BLOCKS |= {"header", "hgroup", "legend", "main", "nav", "option", "section"}
OTHER_BLOCKS |= {"summary"}
# Nothing to read.
LEFT_OUT = frozenset(("audio", "iframe", "math", "noscript", "object", "script"))
LEFT_OUT |= {"style", "svg", "template", "textarea", "title", "video"}
SCHEMES = frozenset(("http", "https", "mailto"))

# A comment and the like, or a tag: it ends at the first `>` outside of a quoted value.
TAG = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-z]))[^>]*>?"
    r"|<(/?)([a-z][^\s/>]*)"
    r"""((?:[^>=]|=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))?)*+)(?:>|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
ATTRIBUTE = re.compile(r"""([^\s/=]+)(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|(\S*)))?""")
HIDDEN = re.compile(r"display:\s*none|visibility:\s*hidden")
LANGUAGE = re.compile(r"(?:^|\s)lang(?:uage)?-([\w.+#-]+)(?=\s|$)")
# What CommonMark, with tables and `~~`, would read as markup. At the ends of a text all of it
# counts: another text may follow.
MARKUP = re.compile(
    r"""[\\`\[]
    | \](?=[(\[:]|$)
    | \*(?!\s) | (?<!\s)\*
    | (?<![^\W_])_ | _(?![^\W_])
    | ~(?=~) | (?<=\S)~ | ^~
    | <(?=[A-Za-z/!?]|$)
    | &(?=\#?\w*(?:;|$))
    | (?<=\s)\#(?=\#*\s*$)""",
    re.VERBOSE,
)
# At the start of a line: a heading, quote, list, rule or table.
START = re.compile(r"^( ?)(#{1,6}(?=\s|$)|[>|]|[-+=:](?=[-=:\s|]*(?:[\s|]|$)))")
NUMBER = re.compile(r"^( ?\d{1,9})(?=[.)](?:\s|$))")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# Browsers ignore these before they look for the scheme of an address, or some of these.
INVISIBLE = re.compile(
    r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
UNSAFE_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\"<>\\`|()]")
# The library escapes what no visitor reaches: links and cells.
OPTIONS = ConversionOptions(
    autolinks=False,
    bullets="-",
    escape_asterisks=True,
    escape_misc=True,
    escape_underscores=True,
    extract_metadata=False,
)


class _TooComplexError(Exception):
    """Writing the HTML as Markdown would take much more than its size."""


def from_html(text: str) -> str | None:
    """Return HTML as Markdown; None if it is too large or deep, binary, or has nothing to read."""
    # NUL is in no text.
    if len(text) > LONGEST or text.count("<") > MOST_TAGS or "\0" in text:
        return None
    try:
        page = f"<div>{''.join(_cleaned(text))}</div>"
        content = convert(page, OPTIONS, visitor=_Visitor()).content or ""
    except Exception:  # noqa: BLE001 - the library names none
        return None
    if not content.strip() or len(content) > MOST_GROWTH * len(text) + 100:
        return None
    return content.strip("\n") + "\n"


def escaped(text: str) -> str:
    """Return a text as Markdown that reads as the same text, in one line."""
    text = MARKUP.sub(r"\\\g<0>", re.sub(r"\s+", " ", text))
    return NUMBER.sub(r"\1\\", START.sub(r"\1\\\2", text))


def is_allowed(address: str) -> bool:
    """Return True if an address is relative or has one of SCHEMES, however it is encoded."""
    for _ in range(3):
        address, previous = html.unescape(address), address
    if address != previous:
        return False  # escaped again and again, as no author does
    scheme, colon, _ = INVISIBLE.sub("", address).partition(":")
    is_relative = not colon or bool(re.search("[/?#]", scheme))
    return is_relative or scheme.lower() in SCHEMES


def _cleaned(text: str) -> Iterator[str]:
    """Yield the parts of a page: texts, and tags of elements that Markdown has."""
    position = depth = 0
    while match := TAG.search(text, position):
        yield text[position : match.start()].replace("<", "&lt;")
        position = match.end()
        tag, is_end = (match[2] or "").lower(), bool(match[1])
        if tag in LEFT_OUT and not is_end:
            end = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE)
            found = end.search(text, position)
            position = found.start() if found else len(text)
        elif tag == "img":
            yield html.escape(_attributes(match[3]).get("alt", ""))
        elif tag in INLINE | BLOCKS | OTHER_BLOCKS:
            if tag not in ENDED and tag not in {"br", "hr"}:
                depth = max(depth - 1, 0) if is_end else depth + 1
            if depth > DEEPEST:
                raise _TooComplexError
            name = "div" if tag in OTHER_BLOCKS else tag
            yield f"</{name}>" if is_end else _start(name, _attributes(match[3]))
    yield text[position:].replace("<", "&lt;")


def _attributes(text: str) -> dict[str, str]:
    pairs = (
        (name.lower(), html.unescape(quoted or single or bare))
        for name, quoted, single, bare in ATTRIBUTE.findall(text)
    )
    return dict(reversed(list(pairs)))  # the first of a name counts


def _start(tag: str, values: dict[str, str]) -> str:
    """Return a start tag with what of its attributes Markdown has."""
    if "hidden" in values or HIDDEN.search(values.get("style", "")):
        return f"<{tag} hidden>"
    if tag == "a":
        address = values.get("href", "")
        target = html.escape(address) if is_allowed(address) else ""
        return f'<a href="{target}">' if target else "<a>"
    if tag == "ol" and re.fullmatch(r"[0-9]{1,9}", values.get("start", "")):
        return f'<ol start="{values["start"]}">'
    if tag == "code" and (language := LANGUAGE.search(values.get("class", ""))):
        return f'<code class="language-{language[1]}">'
    return f"<{tag}>"


class _Visitor:
    """Writes texts and links; the library writes the rest."""

    def __init__(self) -> None:
        self._code = 0  # open elements
        self._is_image = False  # a link here would be one
        self._images: list[bool] = []  # of the open links

    def visit_element_start(self, context: Any) -> str:
        self._code += context.tag_name in CODE
        if context.tag_name == "a":
            self._images.append(self._is_image)
        return "continue"

    def visit_element_end(self, context: Any, _output: str) -> str:
        self._code -= context.tag_name in CODE
        return "continue"

    def visit_text(self, _context: Any, text: str) -> Any:
        self._is_image = text.endswith("!")
        if self._code:
            return "continue"
        return {"type": "custom", "output": escaped(ESCAPED.sub(r"\1", text))}

    def visit_link(self, _context: Any, address: str, text: str, _title: Any) -> Any:
        space = " " * self._images.pop() if self._images else ""
        address = UNSAFE_IN_ADDRESS.sub(
            lambda match: f"%{ord(match[0]):02X}", address.strip()
        )
        address = re.sub(r"&(?=#?\w+;)", r"\\&", address)
        link = f"{space}[{text}]({address})" if address and text else text
        return {"type": "custom", "output": link}
