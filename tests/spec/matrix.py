"""Which test proves which rule of the specifications.

Each file beside this one holds a specification's rules, one on each line that starts with `- `.
A test names the rules that it proves: `@pytest.mark.spec("recording", "create response")`.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
TESTS = FOLDER.parent
DOCUMENTS = ("recording", "gateway", "catalog")
SLOW = "pytest.mark.slow"
# All tests in these folders and files are slow: `make test` does not even import them.
SLOW_FOLDERS = frozenset({"browser", "e2e", "faults"})
SLOW_FILE = "test_generated_calls.py"
SLOW_MODULE = re.compile(r"^pytestmark = (\[[^\]]*)?pytest\.mark\.slow\b", re.MULTILINE)


def rules(document: str) -> Iterator[str]:
    """Yield the text of each rule of a specification."""
    for line in (FOLDER / f"{document}.md").read_text().splitlines():
        if line.startswith("- "):
            yield line[2:]


def is_slow(path: Path) -> bool:
    """Return True for a folder or file whose tests are all slow."""
    if path.name in {*SLOW_FOLDERS, SLOW_FILE} or path.parent.name in SLOW_FOLDERS:
        return True
    return path.suffix == ".py" and bool(SLOW_MODULE.search(path.read_text()))


@cache
def marked(*, slow: bool = True) -> set[tuple[str, str]]:
    """Return document and rule of each mark; without `slow`, of those that `make test` runs."""
    found = set[tuple[str, str]]()
    for file in sorted(TESTS.rglob("test_*.py")):
        if "mark.spec(" in (text := file.read_text()) and (slow or not is_slow(file)):
            found.update(_marks(ast.parse(text), slow=slow))
    return found


def _marks(tree: ast.Module, *, slow: bool) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        decorators = getattr(node, "decorator_list", None) or _module_marks(node)
        if not slow and SLOW in map(ast.unparse, decorators):
            continue
        for call in decorators:
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith(".spec"):
                document, *named = (ast.literal_eval(part) for part in call.args)
                yield from ((document, rule) for rule in named)


def _module_marks(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Assign) or ast.unparse(node.targets[0]) != "pytestmark":
        return []
    return node.value.elts if isinstance(node.value, ast.List) else [node.value]
