"""Code samples of the documentation, each by the name behind its language."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
FENCE = re.compile(r"^ *```(.*)$")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Find the blocks of a page, those in lists too: what opens each, "language name", and its code."""
    head: str | None = None
    code: list[str] = []
    for line in page.read_text().splitlines(keepends=True):
        fence = FENCE.match(line)
        if fence and head is None:
            head, code = fence[1], []
        elif fence and head is not None:
            yield head, dedent("".join(code))
            head = None
        else:
            code.append(line)
    assert head is None, f"{page}: the block {head!r} has no end"


def sample(page: str, language: str, name: str) -> str:
    """Return the code of a block of docs/ (or of `../README.md`) that opens with ```language name."""
    for head, code in blocks(DOCS / page):
        if head == f"{language} {name}":
            return code
    raise AssertionError(f"{page} has no sample {language} {name}")


def filled(code: str, values: Mapping[str, str]) -> str:
    """Put values in place of what a reader is to fill in; each must be there."""
    for written, value in values.items():
        assert written in code, f"{written!r} is not in the sample"
        code = code.replace(written, value)
    return code


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
