"""The words of a text, as the index stores them and as queries are compared with them.

Letter case, accents and compatibility forms are ignored. In scripts that put no spaces between
words each character is a token.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from recording.library.search.limits import check_time

Tokens = Sequence[str]

# Thai, Lao, Myanmar, Khmer, kana, Bopomofo, Han and Hangul.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
)
HANGUL = range(0xAC00, 0xD7A4)
# A syllable whose letters are apart, as the file names of macOS have them.
VOWELS_AND_FINALS = "[\u1161-\u11c2]"
SYLLABLE = re.compile(rf"[\u1100-\u1112\uac00-\ud7a3]{VOWELS_AND_FINALS}+")
ACCENT = re.compile("[\u0300-\u036f\u00ad]")  # and the soft hyphen
END = "\0"  # of a token, which never holds it
# Other threads run between pieces.
PIECE = 50_000  # characters that are folded at once; more where a syllable would be cut
PIECES = re.compile(rf"(?s:.{{1,{PIECE}}}){VOWELS_AND_FINALS}*")
TOKENS_AT_ONCE = 10_000
MOST_TOKENS = 32  # in a phrase
LONGEST_TERM = 64  # characters; a key of PostgreSQL's index has less than 2,700 bytes


def _marks() -> str:
    r"""Return the ranges of all scripts' marks, which are part of words, but not of \w in Python.

    A set of ranges is compiled in a tenth of the time.
    """
    kinds = "".join(unicodedata.category(chr(code))[0] for code in range(0x10000))
    runs = re.finditer("M+", kinds)
    return "".join(f"{chr(run.start())}-{chr(run.end() - 1)}" for run in runs)


MARKS = _marks()
ONE_LETTER = rf"[^\W_{UNSPACED}]"
LETTERS = ONE_LETTER + "+"
TOKEN = re.compile(
    rf"(?=\w)[{UNSPACED}][{MARKS}]*|{LETTERS}(?:[{MARKS}]+(?:{LETTERS})?)*"
)
ASCII_TOKEN = re.compile("[a-z0-9]+")
# As it is written: with the soft hyphens, which folding removes.
UNFOLDED_TOKEN = re.compile(TOKEN.pattern.replace(f"[{MARKS}]", f"[{MARKS}\u00ad]"))
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
    """Return a text in lower case and without accents, the syllables of Hangul whole."""
    if text.isascii():
        return text.lower()
    pieces = (match[0].translate(_FOLDING) for match in PIECES.finditer(text))
    return "".join(SYLLABLE.sub(_composed, piece) for piece in pieces)


def _composed(letters: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", letters[0])


def tokens(text: str) -> list[str]:
    """Return the tokens of a folded text in their order."""
    return (ASCII_TOKEN if text.isascii() else TOKEN).findall(text)


def present(text: str, phrases: Iterable[Tokens]) -> list[Tokens]:
    """Return the phrases that stand in a folded text: their tokens one after the other."""
    sought = [each for each in phrases if _may_have(text, each)]
    if not sought:
        return []
    parts = [""]
    found = (ASCII_TOKEN if text.isascii() else TOKEN).finditer(text)
    while part := [match[0] for match in islice(found, TOKENS_AT_ONCE)]:
        check_time()
        parts.append(END.join(part))
    marked = END.join([*parts, ""])
    return [each for each in sought if END + END.join(each) + END in marked]


def _may_have(text: str, phrase: Tokens) -> bool:
    """Return False if a text lacks a token or two in a row; much faster than the tokens."""
    return all(token in text for token in phrase) and all(
        re.search(rf"{re.escape(one)}[\W_]*+{re.escape(next_one)}", text)
        for one, next_one in pairwise(phrase)
    )


def spans(text: str, phrases: Iterable[Tokens]) -> Iterator[tuple[int, int]]:
    """Return where phrases stand in a text that is not folded, by their ends.

    A character that is no letter but becomes one, as the degree sign of Celsius, has no place.
    """
    by_last = defaultdict(list)
    for phrase in phrases:
        by_last[phrase[-1]].append(tuple(phrase))
    last: deque[tuple[str, int]] = deque(maxlen=MOST_TOKENS)
    pattern = UNFOLDED_TOKEN
    if text.isascii():
        text, pattern = text.lower(), ASCII_TOKEN
    for number, match in enumerate(pattern.finditer(text), start=1):
        if number % TOKENS_AT_ONCE == 0:
            check_time()
        for token in tokens(folded(match[0])):
            last.append((token, match.start()))
            for phrase in by_last.get(token, ()):
                part = list(last)[-len(phrase) :]
                if tuple(each for each, _ in part) == phrase:
                    yield part[0][1], match.end()


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
