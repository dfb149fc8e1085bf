"""One line of Markdown: its text, emphasis, links and code, with the escapes that it needs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from string import punctuation
from typing import NamedTuple

SPECIAL = re.compile(r"[\\`*_\[\]<>&|~#=+!-]|(?<=\d)[.)]")
RUN = re.compile(r"\*+|_+|~+|`+")
# Characters of a text that are markup wherever they stand.
MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~\0\n]|\Z)|<(?=[a-zA-Z/!?])"
    r"|&(?=(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{0,40});)"
)
# The character, in a group, that makes the start of a line a quote, a heading, a list, code, a rule,
# the line below a heading or the second line of a table.
START = re.compile(
    r"^(?:(>)|(#)#{0,5}(?=[ \t]|$)|([-+*])(?=[ \t]|$)|\d{1,9}([.)])(?=[ \t]|$)"
    r"|(`)``|(~)~~|([-=*_|:])[-=*_|: \t]*$)",
    re.MULTILINE,
)
# Signs end a heading only behind a blank (CommonMark 4.2).
CLOSING = re.compile(r"(?:^|(?<=[ \t]))#+$")
DEFINITION = re.compile(r"\[[^\0]*?\]:")


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown, for any place."""
    return SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


class _Piece(NamedTuple):
    """A part of a line. `kind` is text, code, markup, open or close (of emphasis)."""

    text: str
    kind: str

    @property
    def shown(self) -> str:
        return _code(self.text) if self.kind == "code" else self.text


LINK = _Piece("[", "markup")


class Line:
    """The content of one block.

    White space and beginnings are written once something follows them, so that emphasis and links
    are never empty, and begin and end with what is not white space.
    """

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []
        self._gap = ""
        self._waiting: list[_Piece] = []
        self._ends: list[_Piece] = []  # of what is open, the innermost last
        self._link = _Piece("", "markup")  # the end of the open one

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    @property
    def has_break(self) -> bool:
        return self._gap == "\n"

    def space(self) -> None:
        self._gap = self._gap or " "

    def line_break(self) -> None:
        if self._pieces:
            self._gap = "\n"

    def add(self, text: str, *, is_code: bool = False) -> None:
        self._begin()
        if is_code:
            self._pieces.append(_Piece(text, "code"))
        else:
            self._add_text(text)

    def _add_text(self, text: str, *, is_label: bool = False) -> None:
        """Add text. Square brackets would end the label of a link or an image."""
        if not is_label and self._link not in self._ends:
            self._pieces.append(_Piece(text, "text"))
            return
        for part in re.split(r"([\[\]])", text):
            kind = "markup" if part in {"[", "]"} else "text"
            self._pieces.append(_Piece("\\" + part if kind == "markup" else part, kind))

    def add_image(self, alt: str, target: str) -> None:
        self._begin()
        self._pieces.append(_Piece("![", "markup"))
        self._add_text(alt, is_label=True)
        self._pieces.append(_Piece("]" + target, "markup"))

    def _begin(self) -> None:
        """Write the white space and the beginnings that were waiting for content."""
        if self._gap and self._pieces:
            self._pieces.append(_Piece(self._gap, "text"))
        self._gap = ""
        self._pieces += self._waiting
        self._ends += (self._end(piece) for piece in self._waiting)
        self._waiting = []

    def _end(self, start: _Piece) -> _Piece:
        return self._link if start == LINK else start._replace(kind="close")

    def open(self, delimiter: str) -> None:
        last = self._pieces[-1] if self._pieces else None
        if last == (delimiter, "close") and not self._gap and not self._waiting:
            self._ends.append(self._pieces.pop())  # the same emphasis goes on
        else:
            self._waiting.append(_Piece(delimiter, "open"))

    def open_link(self, target: str) -> None:
        self._link = _Piece("]" + target, "markup")
        self._waiting.append(LINK)

    def close(self, delimiter: str) -> None:
        self._close(_Piece(delimiter, "open"))

    def close_link(self) -> None:
        self._close(LINK)

    def _close(self, start: _Piece) -> None:
        if start in self._waiting:
            self._waiting.remove(start)
        elif (end := self._end(start)) in self._ends:
            first = self._ends.index(end)
            inner = self._ends[first + 1 :]
            self._pieces += reversed(self._ends[first:])
            del self._ends[first:]
            # Emphasis that is not inside it altogether goes on behind it.
            goes_on = (piece for piece in inner if piece.kind == "close")
            waiting = [piece._replace(kind="open") for piece in goes_on]
            self._waiting = waiting + self._waiting

    def written(self, *, is_heading: bool = False) -> str:
        """Return the Markdown; a heading, or a cell of a table, has no start of its own."""
        pieces = list(_joined(_recognised([*self._pieces, *reversed(self._ends)])))
        shown = "".join(piece.shown for piece in pieces)
        # In place of what is not text: no text has this character.
        text = "".join(
            piece.text if piece.kind == "text" else "\0" * len(piece.shown)
            for piece in pieces
        )
        escaped, end = [], 0
        for position in sorted(set(_needed(shown, text, is_heading=is_heading))):
            escaped += [shown[end:position], "\\"]
            end = position
        return "".join([*escaped, shown[end:]]).replace("\n", "  \n")


def fence_of(code: str, *, at_least: int) -> str:
    """Return more backticks than the code has in a row."""
    longest = max(map(len, re.findall("`+", code)), default=0)
    return "`" * max(at_least, longest + 1)


def _code(text: str) -> str:
    fence = fence_of(text, at_least=1)
    pad = " " if "`" in (text[0], text[-1]) else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _joined(pieces: list[_Piece]) -> Iterator[_Piece]:
    """Return pieces in which adjacent code is one: the backticks between two would be text."""
    for kind, group in groupby(
        (each for each in pieces if each.text), key=lambda piece: piece.kind
    ):
        if kind == "code":
            yield _Piece("".join(piece.text for piece in group), kind)
        else:
            yield from group


# ── Emphasis ────────────────────────────────────────────────────────────────────────


def _recognised(pieces: list[_Piece]) -> list[_Piece]:
    """Return pieces without the delimiters that Markdown would not recognise.

    In `a**"b"**c` it does not: the characters beside a delimiter decide.
    """
    kept = list(pieces)
    opened: list[tuple[int, bool]] = []
    for start, end in _runs(pieces):
        before = pieces[start - 1].shown[-1:] if start else ""
        after = pieces[end].shown[:1] if end < len(pieces) else ""
        opens, closes = _roles(before, pieces[start:end], after)
        for number in range(start, end):
            if pieces[number].kind == "open":
                opened.append((number, opens))
                continue
            first, is_open = opened.pop()
            if not (is_open and closes):
                kept[first] = kept[number] = _Piece("", "markup")
    return kept


def _runs(pieces: list[_Piece]) -> Iterator[tuple[int, int]]:
    """Return where delimiters stand beside each other."""
    start = 0
    while start < len(pieces):
        end = start
        while end < len(pieces) and pieces[end].kind in {"open", "close"}:
            end += 1
        if end > start:
            yield start, end
        start = end + 1


def _roles(before: str, run: list[_Piece], after: str) -> tuple[bool, bool]:
    """Return whether delimiters between two characters can open emphasis, and close it."""
    is_turn = len({piece.kind for piece in run}) == 2  # one ends, another begins
    if is_turn and len(run) == 2:
        return _is_word(after), _is_word(before)
    # For one kind of delimiter another kind is punctuation.
    is_uniform = len({piece.text[0] for piece in run}) == 1
    opens = (is_uniform and _is_word(after)) or (
        _is_space(before) and not _is_space(after)
    )
    closes = (is_uniform and _is_word(before)) or (
        _is_space(after) and not _is_space(before)
    )
    return opens and not is_turn, closes


def _is_word(character: str) -> bool:
    """Return True if no version of CommonMark calls a character space or punctuation."""
    return bool(character) and unicodedata.category(character)[0] in "LNM"


def _is_space(character: str) -> bool:
    """Return True if Markdown treats a character, or the end of the text, as white space."""
    return character in " \t\n\f\r" or unicodedata.category(character) == "Zs"


# ── Escapes ─────────────────────────────────────────────────────────────────────────


def _needed(shown: str, text: str, *, is_heading: bool) -> Iterator[int]:
    """Return the characters of a text that CommonMark would read as markup."""
    yield from (match.start() for match in MARKUP.finditer(text))
    for match in re.finditer(r"!\[", shown):  # else the link would be an image
        if text[match.start()] == "!" and text[match.start() + 1] == "\0":
            yield match.start()
    bracket = shown.find("[")
    for match in re.finditer(r"\](?=\()", text):
        if 0 <= bracket < match.start():
            yield match.start()
    if is_heading:
        yield from (match.start() for match in CLOSING.finditer(text))
    else:
        for match in START.finditer(text):
            yield match.start(match.lastindex or 0)
        if DEFINITION.match(text):
            yield 0
    yield from _needed_in_runs(shown, text)


def _needed_in_runs(shown: str, text: str) -> Iterator[int]:
    """Return the delimiters in a text that could be emphasis, or code."""
    runs = [match.span() for match in RUN.finditer(shown)]
    has_code = sum(shown[start] == "`" for start, _ in runs) > 1
    openers: dict[str, int] = {}
    closers: dict[str, int] = {}
    for start, end in runs:
        if _can_open(shown[start - 1 : start], shown[start], shown[end : end + 1]):
            openers.setdefault(shown[start], start)
        if _can_open(shown[end : end + 1], shown[start], shown[start - 1 : start]):
            closers[shown[start]] = start
    for start, end in runs:
        delimiter = shown[start]
        is_markup = "\0" in text[start:end] or (
            has_code
            if delimiter == "`"
            else openers.get(delimiter, end) <= start <= closers.get(delimiter, -1)
            and openers.get(delimiter) != closers.get(delimiter)
        )
        if is_markup:
            yield from (at for at in range(start, end) if text[at] != "\0")


def _can_open(outer: str, delimiter: str, inner: str) -> bool:
    """Return True if a run can begin emphasis; with its sides exchanged, if it can end it.

    The versions of CommonMark differ on whether symbols are punctuation: either counts.
    """
    if _is_space(inner):
        return False
    is_free = _is_space(outer) or _is_sign(outer, "PS")
    return is_free or (delimiter != "_" and not _is_sign(inner, "P"))


def _is_sign(character: str, categories: str) -> bool:
    return character in punctuation or unicodedata.category(character)[0] in categories
