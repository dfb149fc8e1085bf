"""Code samples of the documentation: all of them, and each by the name behind its language."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    ROOT / "CODE_OF_CONDUCT.md",
]
FENCE = re.compile(r"^ *```(.*)$")


class Block(NamedTuple):
    """A fenced block: "```language name", and the line of its page that it opens on."""

    page: str
    line: int
    language: str
    name: str
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Find the blocks of a page, the indented ones of lists too."""
    opened, head, code = 0, "", list[str]()
    for number, line in enumerate(page.read_text().splitlines(keepends=True), 1):
        fence = FENCE.match(line)
        if fence and not opened:
            opened, head, code = number, fence[1], []
        elif fence:
            language, _, name = head.partition(" ")
            where = str(page.relative_to(ROOT))
            yield Block(where, opened, language, name, dedent("".join(code)))
            opened = 0
        else:
            code.append(line)
    assert not opened, f"{page}: the block of line {opened} has no end"


def sample(page: str, language: str, name: str) -> str:
    """Return the code of a block of docs/ (or of `../README.md`) that opens with ```language name."""
    for block in blocks((DOCS / page).resolve()):
        if (block.language, block.name) == (language, name):
            return block.code
    raise AssertionError(f"{page} has no sample {language} {name}")


def filled(code: str, values: Mapping[str, str]) -> str:
    """Put values in place of what a reader is to fill in; each must be there."""
    for written, value in values.items():
        assert written in code, f"{written!r} is not in the sample"
        code = code.replace(written, value)
    return code


def commands(code: str) -> Iterator[list[str]]:
    """Find the words behind each `manage.py`, with what is in brackets because it may be left out."""
    for line in code.splitlines():
        words = shlex.split(line, comments=True)
        if "manage.py" in " ".join(words[:2]):
            at = next(i for i, word in enumerate(words) if word.endswith("manage.py"))
            yield [word.strip("[]") for word in words[at + 1 :]]


def shell(
    script: str,
    *,
    variables: Mapping[str, str],
    statuses: frozenset[int] = frozenset({0}),
) -> str:
    """Run a script as bash does, from the repository's root; return what it printed."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=dict(variables),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in statuses, done.stdout + done.stderr
    return done.stdout + done.stderr
