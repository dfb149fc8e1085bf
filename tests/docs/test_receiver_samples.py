"""The receivers of docs/samples/receivers, each started and sent genuine and forged deliveries."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.docs.samples import DOCS, ROOT, sample
from tests.running import PATIENCE_S, free_port
from tests.signatures import sha256_signature, timestamped_signature
from tests.tools import needs, require
from tests.webhooks_core.signing.test_schemes import VECTORS, body_of

SAMPLES = DOCS / "samples" / "receivers"
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
BODY = (
    b'{"id":"evt_1","type":"webhook.ping","data":{"text":"' + b"x" * 1_500_000 + b'"}}'
)
# A module of Python or Node that a sample needs, and how its receiver is started.
PYTHON = {
    "flask": ["-m", "flask", "--app", "flask_receiver", "run", "-p", "PORT"],
    "django": ["django_receiver.py", "runserver", "--noreload", "127.0.0.1:PORT"],
    "fastapi": ["-m", "uvicorn", "fastapi_receiver:app", "--port", "PORT"],
}
OTHERS = {
    "express": ["node", "express_receiver.cjs"],
    "go": ["go", "run", "receiver.go", "signature.go"],
    "php": ["php", "-S", "127.0.0.1:PORT", "receiver.php"],
    "java": ["java", "SignpostSignature.java"],
}


def command(name: str) -> list[str]:
    """Return how a receiver is started; skip where its tool or its package is missing.

    SAMPLES_PYTHON names an interpreter that has Flask and FastAPI, NODE_PATH a folder that has
    Express.
    """
    if name not in PYTHON:
        require(OTHERS[name][0])
        folder = Path(os.environ.get("NODE_PATH", "/nonexistent"))
        if name == "express" and not (folder / "express").exists():
            pytest.skip("NODE_PATH names no folder with express (npm install express)")
        return OTHERS[name]
    python = os.environ.get("SAMPLES_PYTHON", sys.executable)
    if python == sys.executable and not importlib.util.find_spec(name):
        pytest.skip(
            f"not installed: {name} (pip install {name} where SAMPLES_PYTHON points)"
        )
    return [python, *PYTHON[name]]


@contextmanager
def started(
    name: str, inbox: Path, scratch: Path, secret: str | None = SECRET
) -> Iterator[str]:
    """Start a receiver; return its address. Without a secret its variable is not set."""
    port = str(free_port())
    modules = scratch / "node_modules"
    modules.mkdir(parents=True)
    (modules / "signpost-receiver").symlink_to(ROOT / "clients" / "typescript")
    known = os.environ.get("NODE_PATH", "")
    variables = os.environ | {
        "INBOX": str(inbox),
        "PORT": port,
        "PYTHONPATH": str(ROOT / "clients" / "python"),
        "NODE_PATH": f"{modules}:{known}",
        "GOCACHE": str(scratch / "go"),
    }
    variables.pop("DJANGO_SETTINGS_MODULE", None)
    if secret is not None:
        variables["SIGNPOST_SECRET"] = secret
    words = [word.replace("PORT", port) for word in command(name)]
    process = subprocess.Popen(
        words, cwd=SAMPLES, env=variables, start_new_session=True
    )
    try:
        wait_for(int(port), process)
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert process.poll() is None, "the receiver ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the receiver does not listen")


def deliver(url: str, headers: Mapping[str, str], body: bytes = BODY) -> int:
    sent = {"Content-Type": "application/json", **headers}
    return requests.post(url, body, headers=sent, timeout=PATIENCE_S).status_code


def signed(moment: int, secret: str = SECRET) -> list[dict[str, str]]:
    """Return the headers of recording and of the gateway, while the gateway's secret rotates."""
    return [
        {
            "X-Recording-Timestamp": str(moment),
            "X-Recording-Signature": sha256_signature(secret, moment, BODY),
        },
        {
            "X-Gateway-Signature": timestamped_signature(
                ["whsec_b3RoZXI=", secret], moment, BODY
            )
        },
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PYTHON, *OTHERS])
def test_a_receiver_takes_what_is_genuine_and_recent_alone(name, tmp_path):
    inbox = tmp_path / "inbox.sqlite3"
    now = int(time.time())
    with started(name, inbox, tmp_path) as url:
        assert [deliver(url, headers) for headers in signed(now)] == [204, 204]
        assert [deliver(url, headers) for headers in signed(now - 600)] == [401, 401]
        assert [deliver(url, headers, b"{}") for headers in signed(now)] == [401, 401]
        assert deliver(url, {}) == deliver(url, {"Content-Type": "text/plain"}) == 401
    if name in PYTHON:
        connection = sqlite3.connect(inbox)
        assert connection.execute("SELECT id, body FROM inbox").fetchall() == [
            ("evt_1", BODY)
        ]
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PYTHON, *OTHERS])
def test_a_receiver_without_a_secret_takes_nothing(name, tmp_path):
    for case, secret in enumerate([None, "", "whsec_"]):
        inbox = tmp_path / f"{case}.sqlite3"
        with started(name, inbox, tmp_path / str(case), secret) as url:
            forged = signed(int(time.time()), secret or "")
            assert not {deliver(url, headers) for headers in forged} - {401, 500}
        assert not inbox.exists()


RUBY = """
require './signature.rb'
secret, timestamp, body = ARGV[0], ARGV[1].to_i, ARGV[2]
near = { tolerance: 10**12 }
puts [
  Signpost.verify(secret, { "X-Recording-Timestamp" => ARGV[1], "X-Recording-Signature" => ARGV[3] }, body, **near),
  Signpost.verify(secret, { "X-Gateway-Signature" => ARGV[4] }, body, **near),
  Signpost.verify(secret, { "X-Gateway-Signature" => ARGV[4] }, body + " ", **near),
  Signpost.verify(secret, { "X-Gateway-Signature" => ARGV[4] }, body),
  Signpost.verify(secret, {}, body, **near),
  Signpost.verify("", { "X-Gateway-Signature" => ARGV[5] }, body, **near),
].join(" ")
"""


@pytest.mark.slow
@needs("ruby")
def test_the_verifier_of_rails_takes_what_is_genuine_alone():
    moment, body = 1_700_000_000, b'{"id":"evt_1"}'
    arguments = [
        *(SECRET, str(moment), body.decode()),
        sha256_signature(SECRET, moment, body),
        timestamped_signature(["whsec_b3RoZXI=", SECRET], moment, body),
        timestamped_signature([""], moment, body),
    ]
    done = subprocess.run(
        ["ruby", "-e", RUBY, *arguments],
        cwd=SAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["true", "true", *["false"] * 4]


def test_the_vector_of_the_page_is_golden():
    [golden] = [one for one in VECTORS if one["name"] == "an envelope"]
    vector = json.loads(sample("receivers.md", "json", "vector"))
    assert vector.pop("body").encode() == body_of(golden)
    assert vector.pop("event_id") == "evt_1"
    assert vector == {name: golden[name] for name in vector}
