"""Which test proves which rule of the specifications.

Each file beside this one holds a specification's rules, one on each line that starts with `- `.
A test names the rules that it proves: `@pytest.mark.spec("recording", "create response")`.
`python -m tests.spec.matrix` writes docs/spec-matrix.md.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
TESTS = FOLDER.parent
PAGE = TESTS.parent / "docs" / "spec-matrix.md"
DOCUMENTS = ("recording", "gateway", "catalog", "mcp-events", "claude-code")
SLOW = "pytest.mark.slow"
# All tests in these folders and files are slow: `make test` does not even import them.
SLOW_FOLDERS = frozenset({"browser", "e2e", "faults"})
SLOW_FILE = "test_generated_calls.py"
SLOW_MODULE = re.compile(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.slow\b", re.MULTILINE)
HEAD = """\
# Rules of the specifications and their tests

Each rule has at least one test that names it. `python -m tests.spec.matrix` writes this page.
"""

Tests = Mapping[tuple[str, str], list[str]]


def rules(document: str) -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each rule of a specification."""
    heading = ""
    for line in (FOLDER / f"{document}.md").read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("- "):
            yield heading, line[2:]


def is_slow(path: Path) -> bool:
    """Return True for a folder or file whose tests are all slow."""
    if path.name in {*SLOW_FOLDERS, SLOW_FILE} or path.parent.name in SLOW_FOLDERS:
        return True
    return path.suffix == ".py" and bool(SLOW_MODULE.search(path.read_text()))


@cache
def marked(*, slow: bool = True) -> Tests:
    """Return the tests that name each rule, as `path::name`, by document and rule.

    `slow=False` leaves out those that `make test` does not run.
    """
    tests = defaultdict(list)
    for file in sorted(TESTS.rglob("test_*.py")):
        if "mark.spec(" not in (text := file.read_text()):
            continue
        if not slow and is_slow(file):
            continue
        tree = ast.parse(text)
        path = file.relative_to(TESTS.parent).as_posix()
        for name, document, rule in _marks(tree, slow=slow):
            tests[document, rule].append(f"{path}::{name}" if name else path)
    return tests


def _marks(tree: ast.Module, *, slow: bool) -> Iterator[tuple[str, str, str]]:
    """Yield test (empty for the whole file), document and rule of each mark in a file."""
    for node in ast.walk(tree):
        decorators = getattr(node, "decorator_list", [])
        if not slow and SLOW in map(ast.unparse, decorators):
            continue
        for call in decorators or _module_marks(node):
            if (
                isinstance(call, ast.Call)
                and ast.unparse(call.func) == "pytest.mark.spec"
            ):
                document, *named = (ast.literal_eval(part) for part in call.args)
                for rule in named:
                    yield getattr(node, "name", ""), document, rule


def _module_marks(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytestmark":
        return []
    return node.value.elts if isinstance(node.value, ast.List) else [node.value]


def page() -> str:
    """Return docs/spec-matrix.md."""
    tests, lines = marked(), [HEAD]
    for document in DOCUMENTS:
        lines.append(f"## {document}\n\n| section | rule | tests |\n|---|---|---|")
        for heading, rule in rules(document):
            proofs = "<br>".join(
                f"`{test}`" for test in tests.get((document, rule), [])
            )
            lines.append(f"| {heading} | {_cell(rule)} | {proofs} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
