"""The words of a text, as the index stores them and as queries are compared with them.

Letter case, accents and compatibility forms are ignored. In scripts that put no spaces between
words each character is a token.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise

Tokens = Sequence[str]

# Thai, Lao, Myanmar, Khmer, kana, Bopomofo, Han and Hangul.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
)
HANGUL = range(0xAC00, 0xD7A4)
ACCENT = re.compile("[\u0300-\u036f\u00ad]")  # and the soft hyphen
LONGEST_TERM = 64  # characters; a key of PostgreSQL's index has less than 2,700 bytes


def _marks() -> str:
    r"""Return the marks of all scripts, which are part of words, but not of \w in Python."""
    characters = map(chr, range(0x10000))
    return "".join(each for each in characters if unicodedata.category(each)[0] == "M")


MARKS = _marks()
ONE_LETTER = rf"[^\W_{UNSPACED}]"
LETTERS = ONE_LETTER + "+"
TOKEN = re.compile(
    rf"(?=\w)[{UNSPACED}][{MARKS}]*|{LETTERS}(?:[{MARKS}]+(?:{LETTERS})?)*"
)
ASCII_TOKEN = re.compile("[a-z0-9]+")
MARK = re.compile(f"[{MARKS}]")
LETTER = re.compile(ONE_LETTER)
IS_UNSPACED = re.compile(f"[{UNSPACED}]")


class _Folding(dict[int, str]):
    """What each character becomes, for str.translate."""

    def __missing__(self, code: int) -> str:
        folded = self[code] = _folded_character(chr(code))
        return folded


def _folded_character(character: str) -> str:
    if ord(character) in HANGUL:  # its parts are not what people search for
        return character
    plain = unicodedata.normalize("NFKD", character).casefold()
    return ACCENT.sub("", unicodedata.normalize("NFKD", plain))


_FOLDING = _Folding()


def folded(text: str) -> str:
    """Return a text without case and accents, each character for itself."""
    return text.lower() if text.isascii() else text.translate(_FOLDING)


def tokens(text: str) -> list[str]:
    """Return the tokens of a folded text in their order."""
    return (ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


def spans(text: str, phrase: Tokens) -> Iterator[tuple[int, int]]:
    """Return where a folded text has these tokens one after the other."""
    if any(each not in text for each in phrase):  # much faster than the tokens
        return
    if text.isascii():
        for match in _ascii_phrase(tuple(phrase)).finditer(text):
            yield match.span()
        return
    at = -1
    while (at := text.find(phrase[0], at + 1)) >= 0:
        if _is_start(text, at):
            matches = list(islice(TOKEN.finditer(text, at), len(phrase)))
            if [match[0] for match in matches] == list(phrase):
                yield at, matches[-1].end()


@lru_cache(maxsize=256)  # phrases of callers
def _ascii_phrase(phrase: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a phrase; it begins with a literal, which `re` finds fast."""
    start = f"{phrase[0]}(?<![a-z0-9]{phrase[0]})"
    return re.compile("[^a-z0-9]+".join((start, *phrase[1:])) + "(?![a-z0-9])")


def _is_start(text: str, at: int) -> bool:
    """Return True if a token starts where a letter is."""
    if IS_UNSPACED.match(text, at):
        return True
    while at and MARK.match(text, at - 1):
        at -= 1
    return not (at and LETTER.match(text, at - 1))


def terms(tokens: Tokens) -> Iterator[str]:
    """Return what the index has for a text with these tokens, in no order, some repeatedly.

    Unspaced scripts add the pairs: single characters are in nearly every text.
    """
    yield from map(_term, tokens)
    for first, second in pairwise(tokens):
        if _is_unspaced(first) and _is_unspaced(second):
            yield first + second


def _is_unspaced(token: str) -> bool:
    return not token.isascii() and IS_UNSPACED.match(token) is not None


def _term(token: str) -> str:
    if len(token) <= LONGEST_TERM:
        return token
    return hashlib.sha256(token.encode()).hexdigest()


def text_terms(texts: Iterable[str]) -> set[str]:
    """Return the terms of texts, which need not be folded."""
    plain: set[str] = set()
    found: set[str] = set()
    for text in map(folded, texts):
        if text.isascii():
            plain.update(tokens(text))
        else:
            found.update(terms(tokens(text)))
    return found.union(map(_term, plain))
