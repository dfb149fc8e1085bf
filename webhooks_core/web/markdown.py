"""HTML as Markdown with the same meaning: CommonMark with tables and `~~`.

The HTML is read tag by tag, in proportion to its size, and written block by block. Text is escaped
where CommonMark would read markup, and nowhere else (`markdown_lines`).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

from webhooks_core.web.markdown_lines import Line, fence_of

LONGEST = 1_048_576  # characters; no summary is longer
DEEPEST = 100  # quotes, lists and their items inside each other
MOST_PREFIXES = 2_000_000  # of lines, by the quotes and lists around them

EMPHASIS = {"b": "**", "strong": "**", "em": "*", "i": "*"} | dict.fromkeys(
    ("del", "s", "strike"), "~~"
)
CODE = frozenset(("code", "kbd", "samp", "tt"))
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
LISTS = frozenset(("ul", "ol"))
CELLS = frozenset(("td", "th"))
ROWS = frozenset(("tr", "thead", "tbody", "tfoot"))
CONTAINERS = LISTS | {"li", "blockquote", "table"}
# Each begins a block and ends one.
BLOCKS = (
    frozenset(("address", "article", "aside", "body", "caption", "center", "dd"))
    | {"details", "dialog", "div", "dl", "dt", "fieldset", "figcaption", "figure"}
    | {"footer", "form", "head", "header", "hgroup", "hr", "legend", "main", "nav"}
    | {"option", "p", "section", "select", "summary"}
)
BLOCKS |= CONTAINERS | CELLS | ROWS | HEADINGS.keys()
VOID = frozenset(("br", "hr", "img", "input", "meta", "link", "wbr", "col"))
# The next one of these ends them.
ENDED = frozenset(("p", "li", "dd", "dt", "td", "th", "tr", "option"))
# Nothing to read.
LEFT_OUT = frozenset(
    ("audio", "iframe", "noembed", "noframes", "noscript", "script", "style")
) | {"template", "title", "video"}
SCHEMES = frozenset({"http", "https", "mailto"})

# A comment and the like, or a tag: it ends at the first `>` outside of a quoted value.
TAG = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:[!?]|/(?![a-z]))[^>]*>?"
    r"|<(/?)([a-z][^\s/>]*)"
    r"""((?:[^>=]|=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z))?)*+)(?:>|\Z)""",
    re.DOTALL | re.IGNORECASE,
)
ATTRIBUTE = re.compile(r"""([^\s/=]+)(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|(\S*)))?""")
HIDDEN = re.compile(r"display:\s*none|visibility:\s*hidden")
WHITE_SPACE = re.compile(r"[ \t\n\r\f\xa0]+")
LANGUAGE = re.compile(r"(?:^|\s)lang(?:uage)?-([\w.+#-]+)(?=\s|$)")
# A list that needs no blank line after the text of its item.
TIGHT_LIST = re.compile(r"- |1\. ")
# Browsers ignore these before they look for the scheme of an address, or some of these.
INVISIBLE = re.compile(
    r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
UNSAFE_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\"<>\\`|]")


class _TooComplexError(Exception):
    """Writing the HTML as Markdown would take much more than its size."""


def from_html(text: str, *, longest: int = LONGEST) -> str | None:
    """Return HTML as Markdown; None if it is too large or complex, binary, or has nothing to read."""
    if len(text) > longest or "\0" in text:  # NUL is in no text
        return None
    try:
        return _Writer().written(text)
    except _TooComplexError:
        return None


def is_allowed(address: str) -> bool:
    """Return True if an address is relative or has one of SCHEMES, however it is encoded."""
    for _ in range(3):
        address, previous = html.unescape(address), address
    if address != previous:
        return False  # escaped again and again, as no author does
    scheme, colon, _ = INVISIBLE.sub("", address).partition(":")
    is_relative = not colon or bool(re.search("[/?#]", scheme))
    return is_relative or scheme.lower() in SCHEMES


def _target(values: Mapping[str, str], name: str) -> str | None:
    """Return a destination and a title as Markdown writes them; None without a safe address."""
    address = values.get(name, "")
    if not address or not is_allowed(address):
        return None
    quoted = UNSAFE_IN_ADDRESS.sub(
        lambda match: f"%{ord(match[0]):02X}", address.strip()
    )
    quoted = re.sub(r"&(?=#?\w+;)", r"\\&", quoted)
    if not quoted or re.search("[()]", quoted):
        quoted = f"<{quoted}>"
    title = " ".join(values.get("title", "").split())
    title = re.sub(r'[\\"<&|`]', r"\\\g<0>", title)
    return f'({quoted} "{title}")' if title else f"({quoted})"


def _attributes(text: str) -> dict[str, str]:
    pairs = (
        (name.lower(), html.unescape(quoted or single or bare))
        for name, quoted, single, bare in ATTRIBUTE.findall(text)
    )
    return dict(reversed(list(pairs)))  # the first of a name counts


class _Container:
    """An element whose blocks are written together; the page is the outermost."""

    def __init__(self, tag: str, number: int = 1) -> None:
        self.tag = tag
        self.number = number  # of the next item
        self.tables = 0  # open ones inside a cell
        self.blocks: list[str] = []
        self.rows: list[list[str]] = []

    def written(self) -> str:
        if self.tag in LISTS:
            return "\n".join(self.blocks)
        text = ""
        for block in (*self.blocks, *self._table()):
            is_tight = self.tag == "li" and TIGHT_LIST.match(block)
            text += ("\n" if is_tight else "\n\n") + block if text else block
        return text

    def _table(self) -> Iterator[str]:
        """Return the table, if it has text. Only its head must have a cell for each column."""
        if not any(map(any, self.rows)):
            return
        width = max(map(len, self.rows))
        head, *others = filter(None, self.rows)
        head += [""] * (width - len(head))
        lines = (" | ".join(cells) for cells in (head, ["---"] * width, *others))
        yield "\n".join(f"| {line} |" for line in lines)


class _Writer:
    """Reads a page and writes its blocks."""

    def __init__(self) -> None:
        self._containers = [_Container("")]
        self._line = Line()
        self._heading = ""
        self._emphases = dict.fromkeys(EMPHASIS.values(), 0)  # open elements
        self._code: list[str] | None = None  # the text of the open code
        self._code_depth = 0
        self._is_block = False  # the open code is one
        self._language = ""
        self._hidden: list[str] = []  # an element, and those of its name inside
        self._prefixes = 0

    def written(self, text: str) -> str | None:
        """Return a page as Markdown; None if it is blank. Raises _TooComplexError."""
        position = 0
        while match := TAG.search(text, position):
            self._read(text[position : match.start()])
            position = match.end()
            if (tag := (match[2] or "").lower()) and match[1]:
                self._end(tag)
            elif tag in LEFT_OUT:
                end = re.compile(rf"</{tag}(?=[\s/>])", re.IGNORECASE)
                found = end.search(text, position)
                position = found.start() if found else len(text)
            elif tag:
                self._start(tag, _attributes(match[3]))
        self._read(text[position:])
        self._end_code()
        self._end_block()
        while len(self._containers) > 1:
            self._end_container()
        page = self._containers[0].written()
        return page + "\n" if page else None

    @property
    def _is_in_cell(self) -> bool:
        return self._containers[-1].tag in CELLS

    # ── Tags and text ───────────────────────────────────────────────────────────────

    def _start(self, tag: str, values: Mapping[str, str]) -> None:
        if self._skips(tag, values):
            return
        if (tag in BLOCKS or tag == "pre") and not self._is_block:
            self._end_code()  # it was not closed
        if tag in CODE or tag == "pre":
            self._start_code(tag, values)
        elif self._code is not None:
            self._code.append("\n" if tag == "br" else values.get("alt", ""))
        elif tag in EMPHASIS:
            self._emphases[EMPHASIS[tag]] += 1
            if self._emphases[EMPHASIS[tag]] == 1:
                self._line.open(EMPHASIS[tag])
        elif tag in BLOCKS:
            self._start_block(tag, values)
        else:
            self._start_inline(tag, values)

    def _start_inline(self, tag: str, values: Mapping[str, str]) -> None:
        if tag == "a":
            self._line.close_link()
            if target := _target(values, "href"):
                self._line.open_link(target)
        elif tag == "img":
            self._image(values)
        elif tag == "br":
            self._break()

    def _end(self, tag: str) -> None:
        if self._hidden:
            self._hidden = self._hidden[tag == self._hidden[0] :]
        elif tag == "pre" or (tag in BLOCKS and not self._is_block):
            self._end_code()
            self._end_block()
            self._end_containers(tag)
        elif tag in CODE and self._code is not None:
            self._code_depth -= 1
            if not self._code_depth:
                self._end_code()
        elif tag in EMPHASIS and self._emphases[EMPHASIS[tag]]:
            self._emphases[EMPHASIS[tag]] -= 1
            if not self._emphases[EMPHASIS[tag]]:
                self._line.close(EMPHASIS[tag])
        elif tag == "a":
            self._line.close_link()

    def _skips(self, tag: str, values: Mapping[str, str]) -> bool:
        """Return True for a tag of what the page does not show; take note of where that ends."""
        if self._hidden and tag == self._hidden[0] in ENDED:
            self._hidden.clear()
        is_hidden = "hidden" in values or HIDDEN.search(values.get("style", ""))
        if tag not in VOID and (is_hidden or tag in self._hidden):
            self._hidden.append(tag)
        return bool(self._hidden or is_hidden)

    def _read(self, source: str) -> None:
        if not self._hidden:
            text = html.unescape(source)
            self._text(text) if self._code is None else self._code.append(text)

    def _text(self, data: str, *, is_code: bool = False) -> None:
        """Add text to the line; white space at its ends belongs to what is around it."""
        text = WHITE_SPACE.sub(" ", data)
        if text.startswith(" "):
            self._line.space()
        if text.strip(" "):
            self._line.add(text.strip(" "), is_code=is_code)
            if text.endswith(" "):
                self._line.space()

    def _image(self, values: Mapping[str, str]) -> None:
        alt = " ".join(values.get("alt", "").split())
        if target := _target(values, "src"):
            self._line.add_image(alt, target)
        else:
            self._text(alt)

    def _break(self) -> None:
        if self._is_in_cell or self._heading:
            self._line.space()
        elif self._line.has_break:  # two are a blank line
            self._end_block()
        else:
            self._line.line_break()

    # ── Code ────────────────────────────────────────────────────────────────────────

    def _start_code(self, tag: str, values: Mapping[str, str]) -> None:
        if self._code is None:
            self._is_block = tag == "pre"
            self._code, self._code_depth, self._language = [], 0, ""
            if self._is_block:
                self._end_block()
        self._code_depth += 1
        if language := LANGUAGE.search(values.get("class", "")):
            self._language = language[1]

    def _end_code(self) -> None:
        if self._code is None:
            return
        code, is_block = "".join(self._code), self._is_block
        self._code, self._is_block = None, False
        if not is_block or self._is_in_cell:
            self._text(code, is_code=True)
        elif code.strip():
            fence = fence_of(code, at_least=3)
            code = code.removeprefix("\n").removesuffix("\n")
            block = f"{fence}{self._language}\n{code}\n{fence}"
            self._containers[-1].blocks.append(block)

    # ── Blocks ──────────────────────────────────────────────────────────────────────

    def _start_block(self, tag: str, values: Mapping[str, str]) -> None:
        self._end_block()
        if self._is_in_cell and (tag == "table" or self._containers[-1].tables):
            self._containers[-1].tables += tag == "table"
        elif tag in CELLS | ROWS:
            self._start_cell(tag)
        elif self._is_in_cell:
            return  # a cell has one line
        elif tag == "hr":
            self._containers[-1].blocks.append("***")
        elif tag in CONTAINERS:
            if tag == self._containers[-1].tag == "li":
                self._end_container()
            start = values.get("start", "")
            is_number = start.isascii() and start.isdigit() and len(start) < 10
            self._start_container(_Container(tag, int(start) if is_number else 1))
        else:
            self._heading = HEADINGS.get(tag, "")

    def _start_cell(self, tag: str) -> None:
        if self._is_in_cell:
            self._end_container()
        if (table := self._containers[-1]).tag == "table":
            if tag == "tr" or not table.rows:
                table.rows.append([])
            if tag in CELLS:
                self._start_container(_Container(tag))

    def _start_container(self, container: _Container) -> None:
        self._containers.append(container)
        if len(self._containers) > DEEPEST:
            raise _TooComplexError

    def _end_block(self) -> None:
        """Write the line; open emphasis goes on in the next one."""
        if self._is_in_cell:
            self._line.space()
            return
        if not self._line.is_empty:
            text = self._line.written(is_heading=bool(self._heading))
            self._containers[-1].blocks.append(self._heading + text)
            self._line = self._new_line()
        self._heading = ""

    def _new_line(self) -> Line:
        line = Line()
        for delimiter in filter(self._emphases.get, self._emphases):
            line.open(delimiter)
        return line

    def _end_containers(self, tag: str) -> None:
        """End the last open element of a name, with those inside it; ignore any other end."""
        last = self._containers[-1]
        if last.tables:
            last.tables -= tag == "table"
            return
        if self._is_in_cell and tag in ROWS | CELLS:
            self._end_container()
        elif self._is_in_cell and tag != "table":
            return
        elif tag in CONTAINERS and any(each.tag == tag for each in self._containers):
            while self._containers[-1].tag != tag:
                self._end_container()
            self._end_container()

    def _end_container(self) -> None:
        ended = self._containers.pop()
        parent, text = self._containers[-1], ended.written()
        self._prefixes += text.count("\n")
        if self._prefixes > MOST_PREFIXES:
            raise _TooComplexError
        if ended.tag in CELLS:
            cell = self._line.written(is_heading=True)
            parent.rows[-1].append(cell.replace("|", "\\|"))
            self._line = self._new_line()
        elif ended.tag == "li" and text:
            marker = f"{parent.number}. " if parent.tag == "ol" else "- "
            parent.number += 1
            indent = "\n" + " " * len(marker)
            parent.blocks.append(marker + re.sub(r"\n(?!\n)", indent, text))
        elif ended.tag == "blockquote" and text:
            lines = (f"> {line}" if line else ">" for line in text.split("\n"))
            parent.blocks.append("\n".join(lines))
        elif text:
            parent.blocks.append(text)
