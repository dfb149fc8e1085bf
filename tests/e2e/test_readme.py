"""The commands of README.md and the first ones of other pages, run as a newcomer would, against an instance of its own."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import requests

from tests.docs.samples import filled, sample, shell
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
    receiver: int = field(default_factory=free_port)

    def run(self, name: str, page: str = "README.md") -> str:
        """Run the block of a page that opens with ```sh name; return what it printed."""
        return self.shell(sample(f"../{page}", "sh", name))

    def shell(self, script: str) -> str:
        """Run lines of a page against this instance."""
        for written, real in {
            "127.0.0.1:8000": f"127.0.0.1:{self.port}",
            ".venv/bin/python": shlex.quote(sys.executable),
            "9000": str(self.receiver),
        }.items():
            script = script.replace(written, real)
        url = f"http://127.0.0.1:{self.port}"
        variables = environment(DATABASE_URL=self.database, BASE_URL=url)
        return shell(script, variables=variables, statuses=frozenset({0, 143}))


@pytest.fixture(scope="module")
def instance(tmp_path_factory) -> Iterator[Instance]:
    folder: Path = tmp_path_factory.mktemp("readme")
    database, port = f"sqlite:///{folder / 'readme.sqlite3'}", free_port()
    command = ("manage.py", "up", "--port", str(port))
    variables = environment(DATABASE_URL=database, BASE_URL=f"http://127.0.0.1:{port}")
    with running(*command, environment=variables) as process:
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


@pytest.mark.timeout(600)
def test_the_first_proof_works_every_time_and_leaves_nothing_behind(instance):
    for _ in range(2):
        printed = instance.run("event")
        assert "recording signature verified" in printed
        assert '{"ok":true}' in printed
    token = instance.shell(
        ".venv/bin/python manage.py create_personal_token demo --days 1"
    )
    url = f"http://127.0.0.1:{instance.port}/v1/webhooks"
    listed = requests.get(
        url, headers={"Authorization": f"Bearer {token.strip()}"}, timeout=10
    )
    assert listed.json() == {"items": []}


def test_every_request_of_the_first_page_fails_when_it_is_refused():
    lines = [line for line in README.splitlines() if "curl -" in line]
    assert len(lines) >= 5
    assert [line for line in lines if "fail-with-body" not in line] == []


def test_a_document_is_uploaded(instance, tmp_path):
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nAhoy.")
    code = filled(sample("gateway.md", "sh", "upload"), {"notes.md": str(notes)})
    assert json.loads(instance.shell(code))["title"]


def test_the_first_webhook_of_the_gateway_is_retried_until_it_arrives(instance):
    code = sample("gateway.md", "sh", "deliveries").rstrip()
    exports, subscribe, listen, ingest, look = re.split(r"\n(?=curl|\.venv)", code)
    made = json.loads(instance.shell(f"{exports}\n{subscribe}"))
    listen = filled(listen, {"whsec_…": made["secret"], " &": " --port 9000 &"})
    look = filled(look, {"whsub_…": made["id"]})
    listens = "until (: < /dev/tcp/127.0.0.1/9000) 2> /dev/null; do sleep 0.2; done"
    arrived = f"until {look} | grep -E '\"(delivered|failed)\"'; do sleep 0.5; done"
    steps = [exports, listen, listens, ingest, arrived, "kill $!"]
    printed = instance.shell("\n".join(steps))
    for status in ("500", "503", "204"):
        assert f"(gateway signature verified) → {status}" in printed
    [row] = json.loads(printed[printed.index('{"items"') :].splitlines()[0])["items"]
    assert (row["status"], row["attempts"]) == ("delivered", 3)
    assert row["last_error"] == "HTTP 503"


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
