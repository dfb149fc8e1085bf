"""Check the language of the documentation: `python -m tests.docs.language [FILE…]`.

The rules follow the Google developer documentation style guide. Code, addresses and generated
pages are not checked. Exit status 1 and one line per finding if there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.samples import PAGES, ROOT

GENERATED = {"spec-matrix.md"}
MAX_WORDS = (
    30  # of a sentence; Google advises 26, and figures and code count as words here
)

# A pattern, and what to write instead.
WORDS = {
    # archaic or translated
    r"whatever|whoever|whichever|wherever": "name the cases: any, every, each",
    r"thereof|therein|thereby|herein|hereby|lest|whilst|amongst|upon|hence|thus": "plain words",
    r"in (?:the )?want of|wants? for|lack of a": "there is no …",
    r"(?:is|are|was|were) to be|is to (?!a\b|the\b)\w+": "must, or the imperative",
    r"who(?: has| had)? \w+(?:ed|s)? (?:it|them|this)(?:,)? (?:makes?|gets?|has|is)": "if you …",
    r"by (?:himself|herself|themselves)|of (?:its|their|your) own accord": "automatically",
    r"for ever": "indefinitely, or without limit",
    r"to the letter": "exactly",
    r"so (?:many|much|long|often) (?!that\b|as\b|of\b)\w+ (?:may|at most)": "at most …",
    r"tell(?:s)? nothing|tells? (?:it|which|what|why)|is told|are told|was told": "shows, returns",
    r"\bhears? of|has? a say|gives? up the ghost|keeps? books?": "plain words",
    r"mend(?:s|ed)?|aright|anew|afresh|betimes|alas": "fix, again, new",
    r"telephone": "phone",
    r"the house|doors?|at hand|by hand of|what people|the world|a stranger|strangers": "no metaphor",
    r"sign of life|signs of life|dead hand|well-being": "heartbeat, activity",
    # vague
    r"simply|easily|obviously|of course|please|very|quite|really|basically": "leave it out",
    r"and so on|etc\.?|and the like": "list the cases",
    r"some seconds|a while|soon": "give the figure, or leave it out",
    r"e\.g\.|i\.e\.|via\b": "for example, that is, through",
    # not inclusive
    r"whitelist|blacklist|slave|sanity|dummy|crazy|crippled?|blind(?:ly)?": "neutral words",
    r"he|she|his|hers?|him": "you, they, or the role",
    r"telephones|everybody|nobody|anybody": "everyone, no one, or the role",
    # other names for the glossary's terms (docs/glossary.md)
    r"lanes?|shifts?|bells?|buried|drainers?": "endpoint queue, dispatcher lease (glossary)",
    r"resend queue|job row|web hook": "delivery, webhook (glossary)",
}
FORBIDDEN = {
    re.compile(rf"\b(?:{pattern})(?!\w)", re.IGNORECASE): advice
    for pattern, advice in WORDS.items()
}
BY_AGENT = re.compile(
    r"\b(?:is|are|was|were|be|been|being) (?:\w+ly )?\w+(?:ed|en) by (?:the|an?|its|your)\b"
)
QUESTION = re.compile(r"(?:The|An?|What|How|Who|Why|When|Where|If|It|Is|Are) ")

# What is not prose: code, targets of links, HTML comments and pictures, addresses.
NOT_PROSE = (
    (re.compile(r"<!--.*?-->|</?(?:picture|source|img)\b[^>]*>"), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"``[^`]+``|`[^`]*`"), "CODE"),
    (re.compile(r"https?://\S+"), "URL"),
)
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?]\*\*)\s+")
START = re.compile(r"^\s*(?:[-*+] |\d+\. |\||> |#)")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Find the paragraphs, list items and table cells, each with the line that it starts on."""
    fenced, start, lines = False, 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        if is_fence or fenced or not line.strip() or START.match(line):
            if lines:
                yield start, " ".join(lines)
            start, lines = number, []
        if is_fence:
            fenced = not fenced
        elif fenced or re.fullmatch(r"[\s|:-]*", line):
            continue
        elif line.startswith("|"):
            yield from ((number, cell.strip()) for cell in line.strip("|").split("|"))
        else:
            start = start if lines else number
            lines.append(line.strip())


def findings(page: Path) -> Iterator[tuple[int, str]]:
    """Find what breaks a rule in a page: the line, and what is wrong."""
    for line, raw in prose(page.read_text()):
        text = raw
        for pattern, replacement in NOT_PROSE:
            text = pattern.sub(replacement, text)
        if raw.startswith("#"):
            yield from ((line, message) for message in title_faults(text.lstrip("# ")))
        for sentence in SENTENCE_END.split(text):
            words = len(re.findall(r"\w[\w'.,-]*", sentence))
            if words > MAX_WORDS:
                yield line, f"a sentence of {words} words: {sentence[:60]}…"
        for pattern, advice in FORBIDDEN.items():
            for match in pattern.finditer(text):
                yield line, f"“{match[0]}”: {advice}"
        for match in BY_AGENT.finditer(text):
            yield line, f"“{match[0]}”: passive with an agent; name the agent first"


def title_faults(title: str) -> Iterator[str]:
    """Say what is wrong with a title: it names a thing or a task."""
    if title[-1:] in ".?!:":
        yield f"title “{title}” ends with punctuation"
    if QUESTION.match(title):
        yield f"title “{title}”: name the thing or the task"


def main(arguments: list[str]) -> int:
    """Print each finding of the given pages, or of all; return the exit status."""
    chosen = [Path(name).resolve() for name in arguments]
    others = [ROOT / "CHANGELOG.md", *sorted(ROOT.glob("clients/*/README.md"))]
    pages = chosen or [*PAGES, *others]
    number = 0
    for page in pages:
        for line, message in findings(page) if page.name not in GENERATED else ():
            number += 1
            print(f"{page.relative_to(ROOT)}:{line}: {message}")  # noqa: T201
    print(f"{number} findings in {len(pages)} pages")  # noqa: T201
    return int(number > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
