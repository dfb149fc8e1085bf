"""Escape what is text in Markdown, and only where CommonMark would read markup.

The converter escapes every character that could be markup somewhere. Once the page is complete,
`minimal` decides about each escape from what stands around it. What is not an escape is kept first:
backslashes in code and addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from string import punctuation
from typing import NamedTuple

# Before a character that is text, in place of a backslash that is text, in place of one that stays,
# and before a link. Noncharacters: no text has them.
ESCAPE, BACKSLASH, KEPT, LINK = "\ufdd8", "\ufdd9", "\ufdda", "\ufddb"
# Else the link would be an image.
BEFORE_LINK = re.compile(f"{ESCAPE}?!{LINK}")

ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
MARK = re.compile(f"{ESCAPE}(?=(.))|{BACKSLASH}", re.DOTALL)
# Lines that are not blank, without what quotes them.
BLOCK = re.compile(r"(?:^(?![ \t>]*$)[^\n]*(?:\n|\Z))+", re.MULTILINE)
LINE = re.compile(r"[^\n]+")
PREFIX = re.compile(r"(?:[ \t>]|(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
RUN = re.compile(r"\*+|_+|~+|`+")
TAG_OR_ENTITY = re.compile(
    r"<[a-zA-Z/!?]|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,40});"
)
START = re.compile(r">|(?:#{1,6}|[-+*])(?:[ \t]|$)", re.MULTILINE)
NUMBER = re.compile(r"\d{1,9}[.)](?=[ \t]|$)", re.MULTILINE)
FENCE = re.compile(r"`{3,}|~{3,}")
# Signs end a heading only behind a blank (CommonMark 4.2).
CLOSING = re.compile(r"(?<=[ \t])(#+)[ \t]*$", re.MULTILINE)
# A rule, the line below a heading, or the second line of a table.
ONLY_SIGNS = re.compile(r"[-=*_|:+ \t]+\Z")


def kept(text: str) -> str:
    """Return code, or an address, with marks in place of its backslashes: none is an escape."""
    return text.replace("\\", KEPT)


def with_brackets(text: str) -> str:
    """Return the text of a link or an image, whose brackets stay escaped."""
    return ESCAPED.sub(
        lambda match: KEPT + match[1] if match[1] in "[]" else match[0], text
    )


def minimal(text: str) -> str:
    """Return Markdown in which all text is escaped with the escapes that it needs."""
    marked = BEFORE_LINK.sub(f"{KEPT}!", ESCAPED.sub(_mark, text))
    page = _Page(marked.replace(LINK, "").replace(KEPT, "\\"))
    for line in LINE.finditer(page.text):
        page.decide_start(*line.span())
    for block in BLOCK.finditer(page.text):
        page.decide(*block.span())
    return page.written()


def _mark(match: re.Match[str]) -> str:
    return BACKSLASH if match[1] == "\\" else ESCAPE + match[1]


class _Line(NamedTuple):
    """What decides about the characters of a line.

    Its first character; where the first bracket of its block is; whether `|` would separate
    cells; where the signs begin that would end a heading.
    """

    first: str
    bracket: int
    is_table: bool
    tail: int


class _Page:
    """The visible text, which of its characters are marked, and which of them need a backslash."""

    def __init__(self, marked_text: str) -> None:
        pieces: list[str] = []
        marks: list[int] = []
        end = length = 0
        for match in MARK.finditer(marked_text):
            piece = marked_text[end : match.start()]
            pieces.append(piece)
            length += len(piece)
            marks.append(length)
            end = match.end()
            if match[1] is None:
                pieces.append("\\")
                length += 1
        self.text = "".join([*pieces, marked_text[end:]])
        self._is_marked = bytearray(len(self.text) + 1)
        for mark in marks:
            self._is_marked[mark] = 1
        self._needed: set[int] = set()

    def written(self) -> str:
        pieces, end = [], 0
        for position in sorted(self._needed):
            pieces += [self.text[end:position], "\\"]
            end = position
        return "".join([*pieces, self.text[end:]])

    def decide(self, start: int, end: int) -> None:
        """Decide about the marked characters of one block."""
        if self._is_marked.find(1, start, end) < 0:
            return
        self._decide_runs(start, end)
        lines = [line.span() for line in LINE.finditer(self.text, start, end)]
        is_table = any(self._is_only_signs(*line) for line in lines)
        bracket = self.text.find("[", start, end)
        for line in lines:
            facts = self._facts(*line, bracket=bracket, is_table=is_table)
            marks = self._marks(*line)
            self._needed.update(mark for mark in marks if self._is_markup(mark, facts))

    def _facts(self, start: int, end: int, *, bracket: int, is_table: bool) -> _Line:
        first = self.text[self._content(start, end)]
        closing = CLOSING.search(self.text, start, end) if first == "#" else None
        tail = closing.start(1) if closing else end
        bracket = end if bracket < 0 else bracket
        return _Line(first, bracket, is_table or self._has_real("|", start, end), tail)

    def _marks(self, start: int, end: int) -> Iterator[int]:
        position = self._is_marked.find(1, start, end)
        while position >= 0:
            yield position
            position = self._is_marked.find(1, position + 1, end)

    def _is_markup(self, position: int, line: _Line) -> bool:
        """Return True for a character that is markup wherever it stands in a line."""
        after = self.text[position + 1 : position + 2]
        match self.text[position]:
            case "\\":
                is_markup = after in {"", "\n"} or after in punctuation
            case "<" | "&":
                is_markup = TAG_OR_ENTITY.match(self.text, position) is not None
            case "]" if after == "(":
                is_markup = line.bracket < position
            case "]":
                is_markup = after == ":" and line.first == "["
            case "|":
                is_markup = line.is_table
            case "#":
                is_markup = line.tail == position
            case _:
                is_markup = False
        return is_markup

    def _has_real(self, character: str, start: int, end: int) -> bool:
        position = self.text.find(character, start, end)
        while position >= 0 and self._is_marked[position]:
            position = self.text.find(character, position + 1, end)
        return position >= 0

    def _content(self, start: int, end: int) -> int:
        """Return where the content of a line begins, behind quotes and bullets."""
        first = self._is_marked.find(1, start, end)
        match = PREFIX.match(self.text, start, end if first < 0 else first)
        position = match.end() if match else start
        return min(position, end - 1)

    def _is_only_signs(self, start: int, end: int) -> bool:
        content = self._content(start, end)
        return ONLY_SIGNS.match(self.text, content, end) is not None

    def decide_start(self, start: int, end: int) -> None:
        """Decide about the first characters of a line."""
        if self._is_marked.find(1, start, end) < 0:
            return
        text, content = self.text, self._content(start, end)
        if number := NUMBER.match(text, content, end):
            content = number.end() - 1
        is_start = number or START.match(text, content)
        if self._is_marked[content] and is_start:
            self._needed.add(content)
        if fence := FENCE.match(text, content):  # a part of it would be code
            self._needed.update(self._marks(*fence.span()))
        if self._is_only_signs(start, end):
            self._needed.update(self._marks(start, end))

    def _decide_runs(self, start: int, end: int) -> None:
        """Decide about runs of delimiters: those that no other one in the block closes are text."""
        runs = [match.span() for match in RUN.finditer(self.text, start, end)]
        # An escaped one still ends code.
        has_code = sum(self.text[first] == "`" for first, _ in runs) > 1
        openers: dict[str, int] = {}
        closers: dict[str, int] = {}
        roles = [self._roles(*run) for run in runs]
        for (first, _), (opens, closes) in zip(runs, roles, strict=True):
            if opens:
                openers.setdefault(self.text[first], first)
            if closes:
                closers[self.text[first]] = first
        for (first, last), (opens, closes) in zip(runs, roles, strict=True):
            character = self.text[first]
            if character == "`":
                is_markup = has_code
            else:
                is_closed = opens and closers.get(character, -1) > first
                is_opened = closes and openers.get(character, end) < first
                is_markup = is_closed or is_opened
            if is_markup or not all(self._is_marked[first:last]):
                self._needed.update(self._marks(first, last))

    def _roles(self, first: int, last: int) -> tuple[bool, bool]:
        """Return whether a run of delimiters can open emphasis, and whether it can close it.

        The versions of CommonMark differ on whether symbols are punctuation: either counts.
        """
        before, after = self.text[first - 1 : first], self.text[last : last + 1]
        opens = closes = False
        for categories in ("P", "PS"):
            left = _flanks(before, after, categories)
            right = _flanks(after, before, categories)
            if self.text[first] == "_":
                left, right = (
                    left and (not right or _is_sign(before, categories)),
                    right and (not left or _is_sign(after, categories)),
                )
            opens, closes = opens or left, closes or right
        return opens, closes


def _flanks(outer: str, inner: str, categories: str) -> bool:
    """Return True if a run is beside a text: left of `inner`, or right of it in reverse."""
    if not inner or inner.isspace():
        return False
    is_free = not outer or outer.isspace() or _is_sign(outer, categories)
    return is_free or not _is_sign(inner, categories)


def _is_sign(character: str, categories: str) -> bool:
    if character.isascii():
        return character in punctuation and bool(character)
    return unicodedata.category(character)[0] in categories
