"""The commands of README.md and the first ones of other pages, run as a newcomer would, against a running instance."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field

import pytest
import requests

from tests.docs.samples import filled, sample, shell
from tests.e2e.starting import Instance
from tests.running import free_port
from tests.tools import needs

pytestmark = needs("bash", "curl")


@dataclass(frozen=True)
class Newcomer:
    """Somebody who runs the commands of a page beside an instance."""

    instance: Instance
    receiver: int = field(default_factory=free_port)

    def run(self, name: str) -> str:
        """Run the block of README.md that opens with ```sh name; return what it printed."""
        return self._run(sample("../README.md", "sh", name))

    def shell(self, script: str) -> str:
        """Run lines of a page of docs/, after what operations.md says of proxies."""
        return self._run(sample("operations.md", "sh", "no-proxy") + script)

    def _run(self, script: str) -> str:
        for written, real in {
            "127.0.0.1:8000": f"127.0.0.1:{self.instance.port}",
            ".venv/bin/python": shlex.quote(sys.executable),
            "9000": str(self.receiver),
        }.items():
            script = script.replace(written, real)
        return shell(
            script, variables=self.instance.variables, statuses=frozenset({0, 143})
        )


@pytest.fixture
def newcomer(instance) -> Newcomer:
    return Newcomer(instance)


def test_the_first_sample_of_chat_streams_what_it_was_told(newcomer):
    printed = newcomer.shell(sample("chat.md", "sh", "first-chat"))
    assert '"content":"harbour"' in printed.replace(": ", ":")


def test_openais_client_is_answered_as_the_page_says(instance):
    code = sample("chat.md", "python", "openai-client")
    code = code.replace("gw_key_…", instance.gateway_key)
    code = code.replace(":8000", f":{instance.port}")
    [(name, value)] = re.findall(
        r"export (\w+)=(\S+)", sample("operations.md", "sh", "no-proxy")
    )
    said = subprocess.check_output(
        [sys.executable, "-c", code],
        env=instance.variables | {name: value},
        text=True,
    )
    assert said == "Hello"


def test_the_first_sample_of_the_catalogue_finds_the_book(newcomer):
    printed = newcomer.shell(sample("catalog.md", "sh", "first-query"))
    assert '"lastName":"Austen"' in printed.replace(": ", ":")


def test_a_document_is_uploaded(newcomer, tmp_path):
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n\nAhoy.")
    code = filled(sample("gateway.md", "sh", "upload"), {"notes.md": str(notes)})
    assert json.loads(newcomer.shell(code))["title"]


def test_an_event_is_published(newcomer):
    code = sample("gateway.md", "sh", "publish")
    first, again = (json.loads(newcomer.shell(code)) for _ in range(2))
    assert first["id"].startswith("evt_")
    assert again == first | {"duplicate": True}


def test_the_first_webhook_of_the_gateway_is_retried_until_it_arrives(newcomer):
    code = sample("gateway.md", "sh", "deliveries").rstrip()
    exports, subscribe, listen, ingest, look = re.split(r"\n(?=curl|\.venv)", code)
    made = json.loads(newcomer.shell(f"{exports}\n{subscribe}"))
    listen = filled(listen, {"whsec_…": made["secret"], " &": " --port 9000 &"})
    look = filled(look, {"whsub_…": made["id"]})
    listens = "until (: < /dev/tcp/127.0.0.1/9000) 2> /dev/null; do sleep 0.2; done"
    arrived = f"until {look} | grep -E '\"(delivered|failed)\"'; do sleep 0.5; done"
    steps = [exports, listen, listens, ingest, arrived, "kill $!"]
    printed = newcomer.shell("\n".join(steps))
    for status in ("500", "503", "204"):
        assert f"(gateway signature verified) → {status}" in printed
    [row] = json.loads(printed[printed.index('{"items"') :].splitlines()[0])["items"]
    assert (row["status"], row["attempts"]) == ("delivered", 3)
    assert row["last_error"] == "HTTP 503"
    instance = newcomer.instance
    removed = requests.delete(
        f"{instance.url}/v1/webhooks/subscriptions/{made['id']}",
        headers={"Authorization": f"Bearer {instance.gateway_key}"},
        timeout=60,
    )
    assert removed.status_code == 204


def test_the_query_is_answered(newcomer):
    assert '"lastName"' in newcomer.run("query")


def test_the_chat_streams(newcomer):
    chunks = [
        json.loads(line.removeprefix("data: "))
        for line in newcomer.run("chat").splitlines()
        if line
    ]
    texts = [
        it["delta"].get("content", "") for chunk in chunks for it in chunk["choices"]
    ]
    assert "Ahoy!" in "".join(texts)
