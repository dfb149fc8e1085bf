"""Which HTML is converted: limits that one scan checks, in proportion to its size.

The converter copies the content of an element once for each element around it, writes the prefix
of each quote in each line, and pads each row of a table to its longest one: depth and columns
multiply size, time and memory.
"""

from __future__ import annotations

import re

# In characters. No summary is longer.
LONGEST = 1_048_576
DEEPEST = 100
# Tags and lines, each multiplied by the depth.
MOST_WORK = 2_000_000
# Rows, multiplied by the cells and the greatest `colspan` of any row.
MOST_CELLS = 500_000
# Of `<!doctype` and the like: the converter takes quadratic time for them.
MOST_DECLARATIONS = 10

TAG = re.compile(r"<(?:(!--)|(!|\?)|(/?)([a-z][^\s/>]*))")
COLSPAN = re.compile(r"colspan\s{0,9}=\s{0,9}[\"']?\s{0,9}(\d{1,9})")
# How many levels of the depth an element counts; any other, one.
LEVELS = {"blockquote": 5, "ul": 2, "ol": 2}
# Their text is no markup.
RAW = frozenset({"script", "style", "textarea", "title", "xmp", "noframes"})
VOID = frozenset(
    (
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
    )
) | {"source", "track", "wbr"}
# The next one of these ends them, so that they are not inside each other.
ENDED = frozenset(
    ("p", "li", "dt", "dd", "td", "th", "tr", "thead", "tbody", "tfoot", "colgroup")
) | {"caption", "option", "optgroup", "rp", "rt", "html", "head", "body"}


def is_convertible(text: str, *, longest: int = LONGEST) -> bool:
    """Return True if HTML is small, flat and simple enough to be converted."""
    return len(text) <= longest and _Scan(text.lower()).is_within_limits()


class _Scan:
    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[str] = []
        self._counts: dict[str, int] = {}
        self._depth = 1
        self._declarations = self._rows = self._cells = self._most_cells = 0

    def is_within_limits(self) -> bool:
        text, position, work = self._text, 0, 0
        while match := TAG.search(text, position):
            lines = text.count("\n", position, match.start())
            work += (1 + lines) * self._depth
            position = self._after(match)
            if (
                work > MOST_WORK
                or self._depth > DEEPEST
                or self._declarations > MOST_DECLARATIONS
            ):
                return False
        work += text.count("\n", position) * self._depth
        return work <= MOST_WORK and self._are_tables_small()

    def _are_tables_small(self) -> bool:
        spans = max(map(int, COLSPAN.findall(self._text)), default=1)
        return self._rows * self._most_cells * max(spans, 1) <= MOST_CELLS

    def _after(self, match: re.Match[str]) -> int:
        """Take note of a tag; return where the next one may begin."""
        comment, declaration, slash, name = match.groups()
        if comment:
            return self._end_of("-->", match.end())
        if declaration:
            self._declarations += 1
        elif slash:
            self._close(name)
        elif name in RAW:
            return self._end_of(f"</{name}", match.end())
        elif name in ENDED:
            self._count_cell(name)
        elif name not in VOID:
            self._open.append(name)
            self._counts[name] = self._counts.get(name, 0) + 1
            self._depth += LEVELS.get(name, 1)
        return match.end()

    def _count_cell(self, name: str) -> None:
        if name == "tr":
            self._rows, self._cells = self._rows + 1, 0
        elif name in {"td", "th"}:
            self._cells += 1
            self._most_cells = max(self._most_cells, self._cells)

    def _end_of(self, words: str, start: int) -> int:
        end = self._text.find(words, start)
        return len(self._text) if end < 0 else end + len(words)

    def _close(self, name: str) -> None:
        """Close the last open element of a name, with those inside it; ignore any other end."""
        while self._counts.get(name):
            last = self._open.pop()
            self._counts[last] -= 1
            self._depth -= LEVELS.get(last, 1)
            if last == name:
                return
