"""Every code block of every page is at least read by what would run it, and names what exists.

What can run runs: by its name behind the language where a test says `sample(…)`, here where the
pages need no process of their own.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from functools import cache

import pytest
import yaml
from django.urls import Resolver404, resolve
from graphql import build_schema, parse, validate

from tests.docs.samples import DOCS, PAGES, ROOT, Block, blocks, make_targets
from tests.tools import require

BLOCKS = [block for page in PAGES for block in blocks(page)]
# Drawings, and what a command printed: no code.
PLAIN = {"docs/delivery-lifecycle.md": 1, "docs/gateway.md": 1}
PLAIN |= {"docs/recording.md": 1, "docs/architecture.md": 1}
ADDRESS = re.compile(r"(?:http://127\.0\.0\.1:8000|\$BASE)(/[\w./-]*)")
FILE = re.compile(
    r"\b((?:benchmarks/)?requirements[\w/-]*\.lock|tests/[\w/.]+|docs/[\w/.]+|\.env\.\w+)"
)


def read_shell(block: Block) -> None:
    require("bash")
    script = block.code
    done = subprocess.run(
        ["bash", "-n"], input=script, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    for path in ADDRESS.findall(script):
        resolves(path)
    for name in FILE.findall(script):
        assert (ROOT / name).exists(), name
    uncommented = re.sub(r"(^|\s)#.*", "", script)
    assert set(re.findall(r"\bmake ([a-z-]+)", uncommented)) <= make_targets()
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    named = re.findall(r"docker compose (?:run --rm|exec) (\w+)", script)
    assert set(named) <= set(services)


def resolves(path: str) -> None:
    try:
        resolve(path)
    except Resolver404:
        # Chat is served beside Django's addresses.
        assert path in served_by_chat(), path


def served_by_chat() -> set[str]:
    document = json.loads((DOCS / "api" / "openapi.json").read_text())
    return {path for path in document["paths"] if "chat" in path}


def read_nginx(block: Block) -> None:
    """Read it as nginx does: words that end with `;`, or a pair of braces around more."""
    words = shlex.shlex(block.code, posix=True, punctuation_chars="{};")
    words.whitespace_split = True
    depth, directive = 0, list[str]()
    for word in words:
        if word == "{":
            assert directive, "a block without a name"
            depth, directive = depth + 1, []
        elif word == "}":
            assert not directive, f"{directive} has no end"
            depth -= 1
        elif word == ";":
            assert directive, "an empty directive"
            directive = []
        else:
            directive.append(word)
    assert (depth, directive) == (0, [])
    # A forgotten `;` makes one directive of two: here each ends its line.
    for line in re.sub(r"(^|\s)#.*", "", block.code).split("\n"):
        assert not line.strip() or line.rstrip()[-1] in "{};", line
    ports = re.findall(r"(?:http://|server )127\.0\.0\.1:(\d+)", block.code)
    assert ports[0] == "8000"


def read_graphql(block: Block) -> None:
    schema = build_schema((DOCS / "api" / "catalog.graphql").read_text())
    assert validate(schema, parse(block.code)) == []


def read_javascript(block: Block) -> None:
    page = (ROOT / block.page).name
    # test_receiving_webhooks.py and tests/e2e/test_mcp.py run them.
    assert page in {"receiving-webhooks.md", "connect.md"}, "name the test that runs it"


def read_plain(block: Block) -> None:
    assert block.page in PLAIN


READERS: dict[str, Callable[[Block], object]] = {
    "": read_plain,
    "sh": read_shell,
    "json": lambda block: json.loads(block.code),
    "yaml": lambda block: yaml.safe_load(block.code),
    "python": lambda block: compile(block.code, block.place, "exec"),
    "toml": lambda block: tomllib.loads(block.code),
    "graphql": read_graphql,
    "nginx": read_nginx,
    "ini": lambda block: block.name.endswith(".service"),  # test_operations_page.py
    "javascript": read_javascript,
}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_is_what_its_language_says(block):
    READERS[block.language](block)


def test_nothing_is_called_plain_that_is_code():
    plain = [block.page for block in BLOCKS if block.language == ""]
    assert {page: plain.count(page) for page in plain} == PLAIN


@pytest.mark.parametrize(
    "code",
    ["server {", "server { listen 80 }", "server { } }", "{ }", "a on\nb off;"],
)
def test_a_configuration_that_nginx_would_refuse_is_refused(code):
    sound = "proxy_pass http://127.0.0.1:8000;\n"
    read_nginx(Block("page", 1, "nginx", "", sound))
    with pytest.raises(AssertionError):
        read_nginx(Block("page", 1, "nginx", "", sound + code))


def test_a_shell_that_leads_nowhere_is_refused():
    for code in ("curl $BASE/v3/nothing", "make nothing", "if", "pytest tests/nothing"):
        with pytest.raises(AssertionError):
            read_shell(Block("page", 1, "sh", "", code))


NAMED = [block for block in BLOCKS if block.name and block.language != "ini"]


@pytest.mark.parametrize(
    "block", NAMED, ids=lambda block: f"{block.place} {block.name}"
)
def test_a_block_with_a_name_is_run_by_a_test(block):
    # A call with the name, or a row of a table that has the function and the name.
    runs = r"\b(?:run|sample|python|javascript)"
    call = re.compile(rf'{runs}(?:\([^()]*|, )"{block.name}"')
    assert any(
        f'"{block.name}"' in text and call.search(text) for text in texts_of_tests()
    )


@cache
def texts_of_tests() -> list[str]:
    return [file.read_text() for file in (ROOT / "tests").rglob("*.py")]
