"""The commands of README.md and the first ones of other pages, run as a newcomer would, against an instance of its own."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.samples import sample
from tests.running import ROOT, environment, free_port, running

README = (ROOT / "README.md").read_text()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]


@dataclass(frozen=True)
class Instance:
    database: str
    port: int

    def run(self, name: str, page: str = "README.md") -> str:
        """Run the block of a page that opens with ```sh name; return what it printed."""
        block = rf"^```sh {name}\n(.*?)^```$"
        text = (ROOT / page).read_text()
        found = re.search(block, text, re.DOTALL | re.MULTILINE)
        assert found, f"{page} has no block {name}"
        script = found.group(1)
        for written, real in {
            "127.0.0.1:8000": f"127.0.0.1:{self.port}",
            ".venv/bin/python": shlex.quote(sys.executable),
            "9000": str(free_port()),
        }.items():
            script = script.replace(written, real)
        url = f"http://127.0.0.1:{self.port}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env=environment(DATABASE_URL=self.database, BASE_URL=url),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode in {0, 143}, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def instance(tmp_path_factory) -> Iterator[Instance]:
    folder: Path = tmp_path_factory.mktemp("readme")
    database, port = f"sqlite:///{folder / 'readme.sqlite3'}", free_port()
    command = ("manage.py", "up", "--port", str(port))
    with running(*command, environment=environment(DATABASE_URL=database)) as process:
        process.wait_for("Signpost is ready")
        yield Instance(database, port)


def test_the_demo_runs(instance):
    assert "All of it works." in instance.run("demo")


def test_the_first_sample_of_chat_streams_what_it_was_told(instance):
    printed = instance.run("first-chat", "docs/chat.md")
    assert '"content":"harbour"' in printed.replace(": ", ":")


def test_openais_client_is_answered_as_the_page_says(instance):
    own = environment(DATABASE_URL=instance.database)
    make = ["manage.py", "create_gateway_key", "--tenant", "acme", "--principal", "ada"]
    key = subprocess.check_output([sys.executable, *make], env=own, cwd=ROOT, text=True)
    code = sample("chat.md", "python", "openai-client")
    code = code.replace("gw_key_…", key.strip()).replace(":8000", f":{instance.port}")
    said = subprocess.check_output([sys.executable, "-c", code], env=own, text=True)
    assert said == "Hello"


def test_the_first_sample_of_the_catalogue_finds_the_book(instance):
    printed = instance.run("first-query", "docs/catalog.md")
    assert '"lastName":"Austen"' in printed.replace(": ", ":")


def test_the_signed_event_arrives_and_verifies(instance):
    printed = instance.run("event")
    assert "summary.completed" in printed
    assert "verified" in printed
    assert "Fireworks at **nine**" in printed


def test_the_page_is_short():
    assert len(README.splitlines()) <= 120


def test_the_query_is_answered(instance):
    assert '"lastName"' in instance.run("query")


def test_the_chat_streams(instance):
    chunks = [
        json.loads(line.removeprefix("data: "))
        for line in instance.run("chat").splitlines()
        if line
    ]
    texts = [
        it["delta"].get("content", "") for chunk in chunks for it in chunk["choices"]
    ]
    assert "Ahoy!" in "".join(texts)
