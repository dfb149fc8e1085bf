"""The examples of CONTRIBUTING.md, applied to a copy of the tree and used there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.samples import ROOT, sample
from tests.running import environment
from tests.tools import needs

pytestmark = [
    pytest.mark.slow,
    needs("git"),
]

PAGE = "../CONTRIBUTING.md"
LEFT_OUT = (".git", ".venv", "var", "node_modules", "__pycache__", ".*_cache", "*.log")
RECIPES = (
    sample(PAGE, "diff", "event-type"),
    sample(PAGE, "diff", "scheme"),
    sample(PAGE, "diff", "product"),
    sample(PAGE, "diff", "field"),
    sample(PAGE, "diff", "upstream"),
    sample(PAGE, "diff", "command"),
    sample(PAGE, "diff", "setting"),
)

PROGRAM = """
import asyncio, io, sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
from catalog.execution.context import Context
from catalog.execution.operations import GraphQLRequest
from catalog.models import Author
from catalog.views import executor
from gateway import configuration
from gateway.chat.models import ModelEndpoint
from gateway.chat.upstreams import registry
from webhooks_core import endpoints, profiles, publishing
from webhooks_core.models import Delivery
from webhooks_core.profiles import SigningContext
from webhooks_core.receiving.diagnosis import diagnose
from webhooks_core.receiving.verification import Received, verify

call_command("check", fail_level="WARNING")
call_command("makemigrations", check=True, dry_run=True, verbosity=0)
call_command("migrate", verbosity=0)

# An event type.
made = endpoints.create(
    profile="gateway", owner="acme", url="http://127.0.0.1:9/", event_types=[]
)
call_command("emit_event", "ingest.failed", tenant="acme")
assert made.endpoint.delivery_set.get().event.type == "ingest.failed"
document = Path("docs/api/openapi.json").read_text()
assert '"ingest.failed"' in document

# A product, and a signing scheme that it picks.
assert '"X-Shop-Signature"' in document
sold = endpoints.create(
    profile="shop", owner="7", url="http://127.0.0.1:9/", event_types=[]
)
publishing.publish(profile="shop", owner="7", event_type="item.sold", data={"n": 1})
assert sold.endpoint.delivery_set.get().event.type == "item.sold"
for scheme in ("timestamped", "hex"):
    shop = replace(profiles.get("shop"), signature_scheme=scheme)
    profiles.register(shop)
    headers = shop.delivery_headers(SigningContext("e", "t", "d", 1_000, b"{}", ["secret"]))
    headers = {name.lower(): value for name, value in headers.items()}
    received = Received(path="/", headers=headers, body=b"{}", at=1_000)
    verification = verify(received, secrets=["secret"], tolerance_s=300)
    assert verification.is_verified, (scheme, verification)
    assert diagnose(received, secrets=["secret"]) == []
    faults = diagnose(replace(received, body=b"{} "), secrets=["secret"])
    assert [str(fault.part) for fault in faults] == ["body"]
    assert endpoints.may_overlap(sold.endpoint) is (scheme == "timestamped")

# A field of the catalog.
author = Author.objects.create(first_name="Jane", last_name="Austen")
author.books.create(name="Emma", page_count=474)
query = "{ getAuthorById(id: %d) { fullName books { name author { fullName } } } }"
answer = executor.answer(GraphQLRequest(query % author.pk), Context()).body
book = {"name": "Emma", "author": {"fullName": "Jane Austen"}}
expected = {"getAuthorById": {"fullName": "Jane Austen", "books": [book]}}
assert answer == {"data": expected}, answer
assert "fullName: String" in Path("docs/api/catalog.graphql").read_text()

# An upstream.
path = Path("var/hello.yaml")
path.write_text("models: [{name: hello, upstream: hello}]")
[entry] = configuration.load(path).models
assert entry.upstream == "hello"
ModelEndpoint(name="hello", upstream="hello").full_clean(exclude=["supports"])
hello = registry.connect(None)["hello"]
answer = asyncio.run(hello.complete(SimpleNamespace(request_id="r")))
assert b'"Hello"' in answer

# A command, and a setting.
out = io.StringIO()
call_command("count_documents", json=True, stdout=out)
assert out.getvalue() == '{"documents":0}\\n', out.getvalue()
assert settings.GATEWAY_GREETING == "Ahoy"
print("all of it works")
"""
# What compares the pages, the tables and the document with the code.
COMPARING = (
    "tests/docs/test_settings_page.py",
    "tests/docs/test_command_answers.py::test_the_table_holds_every_command_once",
    "tests/gateway/test_openapi.py::test_every_event_type_is_described_with_an_example",
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory, migrated_file) -> Path:
    """A copy of the tree with every recipe applied."""
    copy: Path = tmp_path_factory.mktemp("recipes") / "signpost"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (copy / "shop").mkdir()
    (copy / "shop" / "__init__.py").touch()
    (copy / "var").mkdir()
    shutil.copy(migrated_file, copy / "var" / "signpost.sqlite3")
    for patch in RECIPES:
        run(copy, "git", "apply", "-", given=patch)
    run(copy, sys.executable, "manage.py", "schemas")
    return copy


def run(tree: Path, *command: str, given: str = "") -> str:
    done = subprocess.run(
        command,
        input=given,
        cwd=tree,
        # Else git looks for the repository that the copy may lie in.
        env=environment() | {"GIT_CEILING_DIRECTORIES": str(tree.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def test_what_the_recipes_add_works_and_is_checked_like_all_else(tree):
    variables = "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'"
    printed = run(tree, sys.executable, "-c", f"{variables}\n{PROGRAM}")
    assert printed.endswith("all of it works\n")


def test_the_pages_and_the_layers_hold_with_the_recipes_applied(tree):
    run(tree, sys.executable, "-m", "pytest", "-q", "-n", "0", *COMPARING)
    tool = str(Path(sys.executable).parent / "lint-imports")
    assert "0 broken" in run(tree, tool, "--no-cache")
