"""The additions of CONTRIBUTING.md need no other files than the page names.

They are made in a copy of the tree: whole files from `recipes/`, and the lines below. Then
`recipes/checks.py` uses each of them there, and the tests that keep pages, tables and layers run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.samples import ROOT
from tests.running import environment

RECIPES = ROOT / "tests" / "docs" / "recipes"
LEFT_OUT = (".git", ".venv", "var", "node_modules", "__pycache__", ".*_cache", "*.log")
FILES = {
    "shop": "shop",
    "hello.py": "gateway/chat/upstreams/hello.py",
    "count_documents.py": "gateway/management/commands/count_documents.py",
}


class Insertion(NamedTuple):
    """What a recipe adds to a file, directly before a text that the file has once."""

    path: str
    before: str
    added: str


INSERTIONS = [
    # an event type
    Insertion(
        "gateway/webhooks.py",
        "    EventType(\n        EVAL_REGRESSION,",
        """\
    EventType(
        "ingest.failed",
        "A document could not be read.",
        schema=object_of(
            title=described("The title of the document."),
            reason=described("Why it could not be read."),
        ),
        sample={"title": "Harbour regulations", "reason": "not UTF-8"},
    ),
""",
    ),
    # a signing scheme: the hexadecimal digest alone, by the newest secret
    Insertion(
        "webhooks_core/signing/schemes.py",
        "SCHEMES: dict",
        """\
def _sign_hex(secrets: Sequence[str], timestamp: int, body: bytes) -> SignatureHeaders:
    digest = sha256_digest(secrets[0], str(timestamp), body)
    return SignatureHeaders(digest, str(timestamp))


def _parse_hex(headers: SignatureHeaders) -> ParsedSignature:
    return ParsedSignature(headers.timestamp, [headers.signature])


""",
    ),
    Insertion(
        "webhooks_core/signing/schemes.py",
        '    "sha256": SignatureScheme(',
        """\
    "hex": SignatureScheme(
        sign=_sign_hex,
        parse=_parse_hex,
        description="The hexadecimal HMAC-SHA256 over timestamp, `.` and body.",
    ),
""",
    ),
    # a product
    Insertion(
        "config/settings.py",
        '    "webhooks_core.apps.WebhooksCoreConfig"',
        '    "shop.apps.ShopConfig",\n',
    ),
    Insertion("pyproject.toml", '"webhooks_core"]\ninclude_external', '"shop", '),
    Insertion(
        "pyproject.toml", '", "webhooks_core"]\n\n[[tool.importlinter', " | shop"
    ),
    # a field of the catalog
    Insertion(
        "catalog/schema/types.py",
        "\n\n\nclass Category(RowType)",
        """
    full_name = graphene.String(description="First and last name.")

    @staticmethod
    def resolve_full_name(author: models.Author, _info: object) -> str:
        return f"{author.first_name} {author.last_name}"\
""",
    ),
    # an upstream for chat
    Insertion(
        "gateway/chat/upstreams/registry.py",
        '    "echo": Kind(',
        '    "hello": Kind("gateway.chat.upstreams.hello.Hello", needs_base_url=False),\n',
    ),
    # a command
    Insertion(
        "docs/operations.md",
        "| `create_gateway_key` |",
        "| `count_documents` | counts the ingested documents | `documents` |\n",
    ),
    # a setting
    Insertion(
        "config/settings.py",
        "GATEWAY_RATES = {",
        'GATEWAY_GREETING = env.str("GATEWAY_GREETING", "Ahoy")\n',
    ),
    Insertion(
        "docs/settings.md",
        "| `GATEWAY_CREATE_RATE` |",
        "| `GATEWAY_GREETING` | `Ahoy` | `Ahoy` | what a greeting says |\n",
    ),
]
# What uses the additions, and what compares the pages, the tables and the document with the code.
CHECKS = (
    "tests/docs/recipes/checks.py",
    "tests/docs/test_settings_page.py",
    "tests/docs/test_command_answers.py::test_the_table_holds_every_command_once",
    "tests/config/operations/test_openapi.py::test_every_example_fits_its_schema",
)


def test_the_page_names_the_files_of_each_addition():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    folders = {str(Path(target).parent) for target in FILES.values()}
    named = {"/".join(Path(name).parts[-2:]) for name in folders}
    named |= {Path(insertion.path).name for insertion in INSERTIONS}
    assert [name for name in named if name not in page] == []


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the tree with every addition."""
    copy: Path = tmp_path_factory.mktemp("recipes") / "signpost"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name, target in FILES.items():
        source = RECIPES / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / target)
    for path, before, added in INSERTIONS:
        text = (copy / path).read_text()
        assert text.count(before) == 1, (path, before)
        (copy / path).write_text(text.replace(before, added + before))
    run(copy, sys.executable, "manage.py", "schemas")
    return copy


def run(tree: Path, *command: str) -> str:
    done = subprocess.run(
        command,
        cwd=tree,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


@pytest.mark.slow
def test_the_additions_work_and_the_pages_describe_them(tree):
    run(tree, sys.executable, "-m", "pytest", "-q", "-n", "0", *CHECKS)


@pytest.mark.slow
def test_the_layers_hold_with_the_additions(tree):
    tool = str(Path(sys.executable).parent / "lint-imports")
    assert "0 broken" in run(tree, tool, "--no-cache")
