"""Convert HTML to Markdown with the same meaning; links keep only safe targets.

html_to_markdown does most of it. Its visitor replaces what it does not write safely: links, images,
code, and emphasis, whose delimiters first become marks and are written last.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any, cast

import html_to_markdown
from html_to_markdown import ConversionOptions, PreprocessingOptions

from recording.library import html_escapes as escapes
from webhooks_core.web import html_limits

OPTIONS = ConversionOptions(
    escape_asterisks=True,
    escape_underscores=True,
    escape_misc=True,
    # Nothing that a page does not show: titles, citations, addresses of media, `==`.
    autolinks=False,
    expand_abbreviations=False,
    include_blockquote_citations=False,
    highlight_style="none",
    inline_data_media=html_to_markdown.InlineDataMedia.ALT_TEXT_ONLY,
    extract_metadata=False,
    # Everything that a page shows, also forms and navigation.
    preprocessing=PreprocessingOptions(enabled=False),
)

SCHEMES = frozenset({"http", "https", "mailto"})
# Browsers ignore these before they look for the scheme of an address, or some of these.
INVISIBLE = re.compile(
    r"[\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
)
UNSAFE_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\"<>\\`|]")
ENTITY = re.compile(r"&(?=#?\w+;)")

SPECIAL = re.compile(r"[\\`*_\[\]<>&|~#=+!-]|(?<=\d)[.)]")

CODE_LIKE = frozenset({"kbd", "samp", "tt"})
CODE = CODE_LIKE | {"code", "pre"}
EMPHASIS = {"b": "**", "strong": "**", "em": "*", "i": "*"} | dict.fromkeys(
    ("del", "s", "strike"), "~~"
)
# The converter writes these as emphasis, which the page does not have.
PLAIN = {"figcaption": "*", "dfn": "*", "var": "*", "legend": "**", "summary": "**"}
# A line break before the first word of an item would end the item.
BLANK_START = re.compile(r"\A(\s*(?:[-*+]|\d+[.)]) )\s+(?=\S)")
BREAKS = re.compile(r"(?:  \n *){2,}")
PARAGRAPHS = re.compile(r"(\n\n|(?:  \n *){2,})")
LANGUAGE = re.compile(r"[\w.+#-]+")

# Marks replace delimiters until their neighbours are known. Noncharacters: no text has them.
MARKS = {
    "**": ("\ufdd0", "\ufdd1"),
    "*": ("\ufdd2", "\ufdd3"),
    "~~": ("\ufdd4", "\ufdd5"),
}
DELIMITERS = {mark: text for text, marks in MARKS.items() for mark in marks}
OPENING = frozenset(marks[0] for marks in MARKS.values())
CODE_START, CODE_END = "\ufdd6", "\ufdd7"
MARKED = re.compile("[\ufdd0-\ufdd7]")
# In HTML, literal or as numeric references, a mark could end code.
MARKED_HTML = re.compile(
    r"[\ufdd0-\ufddb]|&#(?:x0*fdd[0-9ab]|0*649[78][0-9])", re.IGNORECASE
)
INLINE_CODE = re.compile("\ufdd6([^\ufdd6\ufdd7]*)\ufdd7")
RUN = re.compile("([\ufdd0-\ufdd5]+)")
EMPTY_MARKS = re.compile(
    "|".join(f"{end}{start}|{start}{end}" for start, end in MARKS.values())
)


def from_html(text: str) -> str | None:
    """Return HTML as Markdown; None if it is too large or complex, or its conversion fails."""
    if MARKED_HTML.search(text) or not html_limits.is_convertible(text):
        return None
    try:
        result = html_to_markdown.convert(text, OPTIONS, cast("Any", _Visitor()))
    except Exception:  # noqa: BLE001 - of a converter that gets any HTML
        return None
    if result.warnings or not (result.content or "").strip():
        return None
    return escapes.minimal(_with_code(emphasised(_joined(result.content or ""))))


def _replace(output: str) -> dict[str, str]:
    return {"type": "custom", "output": output}


class _Visitor:
    """Writes the elements that the converter would not write safely."""

    def __init__(self) -> None:
        self._code = 0
        self._links = 0
        self._emphases = dict.fromkeys(MARKS, 0)
        self._link_shows = False

    def visit_element_start(self, context: Any) -> Any:
        self._code += context.tag_name in CODE
        if context.tag_name in EMPHASIS:
            self._emphases[EMPHASIS[context.tag_name]] += 1
        if context.tag_name == "a":
            self._links += 1
            self._link_shows = False
        return "continue"

    def visit_element_end(self, context: Any, output: str) -> Any:
        tag = context.tag_name
        self._links -= tag == "a"
        if tag in EMPHASIS:
            self._emphases[EMPHASIS[tag]] -= 1
        if tag in CODE:
            self._code -= 1
            return self._end_code(tag, escapes.kept(output))
        if not self._code:
            if tag in EMPHASIS:
                is_inside = self._emphases[EMPHASIS[tag]]  # the same emphasis
                emphasis = _bare if is_inside else _marked
                return _replace(emphasis(output, EMPHASIS[tag]))
            if tag in PLAIN:
                return _replace(_bare(output, PLAIN[tag]))
            if tag == "li" and (start := BLANK_START.match(output)):
                return _replace(start[1] + output[start.end() :])
        return "continue"

    def _end_code(self, tag: str, output: str) -> Any:
        if tag == "pre":
            return _replace(output)
        return (
            _replace(_code(output))
            if tag in CODE_LIKE and not self._code
            else "continue"
        )

    def visit_text(self, _context: Any, text: str) -> Any:
        self._link_shows |= not text.isspace()
        return "continue"

    def visit_link(self, _context: Any, href: str, text: str, title: str | None) -> Any:
        if not self._link_shows:
            return _replace("")  # else the converter shows its title
        # Markdown has no link inside a link or inside code.
        if self._code or self._links > 1 or not href or not is_allowed(href):
            return _replace(text)
        shown = escapes.with_brackets(text)
        return _replace(f"{escapes.LINK}[{shown}]({_target(href, title)})")

    def visit_image(self, _context: Any, src: str, alt: str, title: str | None) -> Any:
        self._link_shows = True
        if self._code:
            return _replace(alt or "")
        text = escapes.with_brackets(escaped(alt or ""))
        if not src or not is_allowed(src):
            return _replace(text)
        return _replace(f"![{text}]({_target(src, title)})")

    def visit_code_inline(self, _context: Any, code: str) -> Any:
        # Code of several lines would contain the marks of its block.
        line = escapes.kept(" ".join(code.splitlines()))
        return _replace(f"{CODE_START}{line}{CODE_END}")

    def visit_code_block(self, _context: Any, lang: str | None, code: str) -> Any:
        if not lang or LANGUAGE.fullmatch(lang):
            return "continue"
        fence = _fence(code, at_least=3)
        return _replace(f"{fence}\n{code}\n{fence}")

    def visit_audio(self, _context: Any, _src: str) -> Any:
        return "skip"  # nothing to read

    visit_video = visit_iframe = visit_audio


# ── Addresses ───────────────────────────────────────────────────────────────────────


def is_allowed(address: str) -> bool:
    """Return True if an address is relative or has one of SCHEMES, however it is encoded."""
    for _ in range(3):
        address, previous = html.unescape(address), address
    if address != previous:
        return False  # escaped again and again, as no author does
    scheme, colon, _ = INVISIBLE.sub("", address).partition(":")
    is_relative = not colon or bool(re.search("[/?#]", scheme))
    return is_relative or scheme.lower() in SCHEMES


def _target(address: str, title: str | None) -> str:
    """Return a destination and its title as Markdown writes them in parentheses."""
    quoted = UNSAFE_IN_ADDRESS.sub(
        lambda match: f"%{ord(match[0]):02X}", address.strip()
    )
    quoted = ENTITY.sub(r"\\&", quoted)
    if not quoted or re.search("[()]", quoted):
        quoted = f"<{quoted}>"
    title = re.sub(r'[\\"<&|`]', r"\\\g<0>", " ".join((title or "").split()))
    return escapes.kept(f'{quoted} "{title}"' if title else quoted)


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown, for any place."""
    return SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


# ── Code ────────────────────────────────────────────────────────────────────────────


def _code(output: str) -> str:
    """Return the converter's inline code with marks in place of its backticks."""
    text = output.strip("`")
    size = (len(output) - len(text)) // 2
    return f"{CODE_START}{MARKED.sub('', output[size : len(output) - size])}{CODE_END}"


def _joined(text: str) -> str:
    """Return a text whose adjacent inline code is one, without empty code."""
    return text.replace(CODE_END + CODE_START, "").replace(CODE_START + CODE_END, "")


def _with_code(text: str) -> str:
    """Return a text with backticks in place of marks; code between which emphasis went is one."""
    return INLINE_CODE.sub(lambda match: _fenced(match[1]), _joined(text))


def _fenced(code: str) -> str:
    fence = _fence(code, at_least=1)
    # Markdown removes a space from each side where both have one.
    is_spaced = code[:1] == code[-1:] == " " and code.strip()
    pad = " " if is_spaced or "`" in (code[:1], code[-1:]) else ""
    return f"{fence}{pad}{code}{pad}{fence}"


def _fence(code: str, *, at_least: int) -> str:
    runs = [len(run) for run in re.findall("`+", code)]
    return "`" * max(at_least, max(runs, default=0) + 1)


# ── Emphasis ────────────────────────────────────────────────────────────────────────


def _marked(output: str, delimiter: str) -> str:
    """Return an output with marks in place of its delimiters; without them if it has blocks."""
    # The converter reads an escaped backslash at the end of a line as half of a break.
    output = output.replace(f"{delimiter}\\\n", f"\\{delimiter}\n")
    start, end = MARKS[delimiter]
    quoted, blank = re.escape(delimiter), r"((?:\s|\\\n)*)"
    pattern = re.compile(f"{blank}{quoted}(.*){quoted}{blank}", re.DOTALL)
    # Each paragraph has its own delimiters, but not the ones that breaks separate.
    parts = PARAGRAPHS.split(BREAKS.sub(rf"{delimiter}\g<0>{delimiter}", output))
    for index in range(0, len(parts), 2):
        match = pattern.fullmatch(parts[index])
        if match is None:
            return _bare(output, delimiter)
        parts[index] = f"{match[1]}{start}{match[2]}{end}{match[3]}"
    return "".join(parts)


def _bare(output: str, delimiter: str) -> str:
    """Return an output without its delimiters."""
    start, end = output.find(delimiter), output.rfind(delimiter)
    if end < start + len(delimiter) or output[:start].strip("\\\n "):
        return output
    inner = output[start + len(delimiter) : end]
    return output[:start] + inner + output[end + len(delimiter) :]


def emphasised(text: str) -> str:
    """Return a text with delimiters in place of marks, where Markdown recognises them.

    In `a**"b"**c` it does not: the characters beside a delimiter decide. Such a text stays
    plain, as does emphasis inside the same emphasis.
    """
    parts = RUN.split(_without_empty_marks(text))
    pieces: list[str] = [parts[0]]
    opened: list[tuple[int, str, bool]] = []
    for run, before, after in zip(parts[1::2], parts[::2], parts[2::2], strict=False):
        opens, closes = _roles(before[-1:], run, after[:1])
        for mark in run:
            pieces.append("")
            delimiter = DELIMITERS[mark]
            if mark in OPENING:
                is_first = all(delimiter != other for _, other, _ in opened)
                opened.append((len(pieces) - 1, delimiter, opens and is_first))
            elif opened:
                start, other, is_open = opened.pop()
                if is_open and closes and other == delimiter:
                    pieces[start] = pieces[-1] = delimiter
        pieces.append(after)
    return "".join(pieces)


def _without_empty_marks(text: str) -> str:
    """Return a text without emphasis that is empty, or ends where the same one begins."""
    count = 1
    while count:
        text, count = EMPTY_MARKS.subn("", text)
    return text


def _roles(before: str, run: str, after: str) -> tuple[bool, bool]:
    """Return whether delimiters between two characters can open emphasis, and close it."""
    if len(run) == 2 and _is_turn(run):
        return _is_word(after), _is_word(before)
    # For one kind of delimiter another kind is punctuation.
    is_uniform = len({DELIMITERS[mark][0] for mark in run}) == 1
    opens = (is_uniform and _is_word(after)) or (
        _is_space(before) and not _is_space(after)
    )
    closes = (is_uniform and _is_word(before)) or (
        _is_space(after) and not _is_space(before)
    )
    return opens and not _is_turn(run), closes


def _is_turn(run: str) -> bool:
    """Return True if one emphasis ends here and another begins."""
    return len({mark in OPENING for mark in run}) == 2


def _is_word(character: str) -> bool:
    """Return True if no version of CommonMark calls a character space or punctuation."""
    return bool(character) and unicodedata.category(character)[0] in "LNM"


def _is_space(character: str) -> bool:
    """Return True if Markdown treats a character, or the end of the text, as white space."""
    return not character or character.isspace()
