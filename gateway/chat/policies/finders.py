"""Where a text holds what a rule is about. Each finder takes time in proportion to the text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Span = tuple[int, int]
# Returns the spans of a text, in their order, none within another.
Finder = Callable[[str], Iterable[Span]]

MAX_WORDS = 10
MAX_SEARCHED = 50
WORD = re.compile(r"\w+")
# A number in one piece, or in groups with a space or a hyphen between them.
DIGITS = re.compile(r"[0-9](?:[ -]?[0-9]){12,}")
GROUP = re.compile(r"[0-9]+")
CARD_LENGTHS = range(13, 20)
# The first digits of cards (ISO/IEC 7812).
CARD_BEGINS = "23456"
# A part before @ has at most 64 characters, and a label 63 (RFC 5321, RFC 1035).
EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@"
    r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,7}\.[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
# Keys that say whose they are: of models, clouds, code hosts, Signpost, and private keys.
API_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_-]{16,200}|(?:gw_key|rec_pat)_[A-Za-z0-9]{20,60}"
    r"|whsec_[A-Za-z0-9+/=]{20,100}|gh[opsur]_[A-Za-z0-9]{36,100}"
    r"|github_pat_[A-Za-z0-9_]{40,100}|glpat-[A-Za-z0-9_-]{20,60}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,100}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,2000}"
    r")|-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"
)


def emails(text: str) -> Iterator[Span]:
    return (match.span() for match in EMAIL.finditer(text)) if "@" in text else iter(())


def api_keys(text: str) -> Iterator[Span]:
    return (match.span() for match in API_KEY.finditer(text))


def cards(text: str) -> Iterator[Span]:
    """Yield the numbers of payment cards: 13 to 19 digits whose check digit is right."""
    for match in DIGITS.finditer(text):
        groups = [group.span() for group in GROUP.finditer(text, *match.span())]
        end = 0
        for number, (start, _) in enumerate(groups):
            if start < end or text[start] not in CARD_BEGINS:
                continue
            if found := _card_end(text, groups[number:]):
                end = found
                yield start, end


def _card_end(text: str, groups: Sequence[Span]) -> int:
    """Return where the card ends that begins with the first group; 0 if there is none."""
    digits, found = "", 0
    for start, end in groups:
        if len(digits) + end - start > CARD_LENGTHS[-1]:
            break
        digits += text[start:end]
        if len(digits) in CARD_LENGTHS and _has_check_digit(digits):
            found = end
    return found


def _has_check_digit(digits: str) -> bool:
    """Return True if the last digit is right (Luhn, ISO/IEC 7812-1, annex B)."""
    total = sum(map(int, digits[-1::-2]))
    total += sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return total % 10 == 0


def words(listed: Iterable[str]) -> Finder:
    """Return a finder of whole words and phrases; case counts for nothing.

    Raises ValueError: one of them has no word, or more than MAX_WORDS.
    """
    tree: dict[str, Any] = {}
    for phrase in listed:
        parts = [part.casefold() for part in WORD.findall(phrase)]
        if not 1 <= len(parts) <= MAX_WORDS:
            raise ValueError(f"must hold phrases of 1 to {MAX_WORDS} words")
        node = tree
        for part in parts:
            node = node.setdefault(part, {})
        node[""] = True  # a phrase ends here

    # Of a short list, a search for its first words is faster than to split the text.
    first = [*tree] if len(tree) <= MAX_SEARCHED else [""]

    def find(text: str) -> Iterator[Span]:
        folded = text.casefold()
        if not any(word in folded for word in first):
            return
        tokens = [(match[0].casefold(), *match.span()) for match in WORD.finditer(text)]
        behind = 0
        for number, (word, start, _) in enumerate(tokens):
            if word not in tree or start < behind:
                continue
            if end := _phrase_end(tree, tokens[number : number + MAX_WORDS]):
                behind = end
                yield start, end

    return find


def _phrase_end(tree: dict[str, Any], tokens: Sequence[tuple[str, int, int]]) -> int:
    """Return where the longest phrase ends that begins with the first token; 0 for none."""
    node, found = tree, 0
    for word, _, end in tokens:
        if word not in node:
            break
        node = node[word]
        if "" in node:
            found = end
    return found


def regex(pattern: str) -> Finder:
    """Return a finder by RE2, which needs linear time for every pattern.

    Raises ValueError for a pattern that RE2 refuses, or that matches the empty text.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"is no pattern of RE2: {text}") from error
    if compiled.search("") is not None:
        raise ValueError("must not match the empty text")

    def find(text: str) -> Iterator[Span]:
        spans = (match.span() for match in compiled.finditer(text))
        return (span for span in spans if span[0] < span[1])

    return find


PATTERNS: dict[str, Finder] = {"card": cards, "api_key": api_keys, "email": emails}
