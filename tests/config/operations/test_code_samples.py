"""The code samples of the reference: each sends the request of its example, in every language."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import pytest

from config.operations.code_samples import BASE
from tests.fuzzing import DOCUMENT
from tests.tools import require

TOKEN = "sample-token"
BEARERS = {"recordingBearer", "gatewayKey", "metricsToken"}
# The samples in Go run only where Go is installed. They ran when this digest changed.
DIGEST = "eaf174601c3dc004701a107d8f05edb962a188ab4b7635efc833a673d68cb895"


class Sent(NamedTuple):
    """A request; the body as the fields that it holds."""

    method: str
    target: str
    token: str | None
    fields: Any


def samples(lang: str) -> list[str]:
    return [
        sample["source"]
        for operations in DOCUMENT["paths"].values()
        for operation in operations.values()
        for sample in operation.get("x-codeSamples", ())
        if sample["lang"] == lang
    ]


def expected() -> list[Sent]:
    """Return the requests that the document's examples describe."""
    found = []
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            if "x-codeSamples" not in operation:
                continue
            names = {name for one in operation["security"] for name in one}
            token = f"Bearer {TOKEN}" if names & BEARERS else None
            contents = operation.get("requestBody", {}).get("content", {}).values()
            values = [
                example["value"]
                for content in contents
                for example in content.get("examples", {}).values()
            ]
            target = re.sub(r"\{\w+\}", "*", path)
            found += [
                Sent(method.upper(), target, token, value) for value in values or [None]
            ]
    return found


@contextmanager
def recording() -> Iterator[tuple[str, list[Sent]]]:
    """A server that takes every request; yields its address and what was sent."""
    sent: list[Sent] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            is_json = self.headers.get("Content-Type") == "application/json"
            fields = json.loads(body) if is_json else dict(parse_qsl(body.decode()))
            token = self.headers.get("Authorization")
            sent.append(Sent(self.command, self.path, token, fields or None))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the library's

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


def joined(sources: list[str]) -> str:
    return "\n".join(sources)


def in_blocks(sources: list[str]) -> str:
    # The one mark of TypeScript that Node does not read.
    return joined([f"{{\n{source}}}" for source in sources]).replace("body!", "body")


def in_one_package(sources: list[str]) -> str:
    imports = (
        'import ("fmt"; "io"; "net/http"; "os"; "strings")\nvar _ = strings.NewReader\n'
    )
    bodies = [source.partition("func main() {")[2] for source in sources]
    calls = "".join(f"sample{number}();" for number in range(len(bodies)))
    functions = [
        f"func sample{number}() {{{body}" for number, body in enumerate(bodies)
    ]
    return f"package main\n{imports}func main() {{ {calls} }}\n{joined(functions)}"


# language: its program, the name of the file, and how many samples become one program
PROGRAMS: dict[str, tuple[list[str], str, Callable[[list[str]], str]]] = {
    "curl": (["bash"], "samples.sh", joined),
    "python": ([sys.executable], "samples.py", joined),
    "typescript": (["node"], "samples.mjs", in_blocks),
    "go": (["go", "run"], "samples.go", in_one_package),
}


@pytest.mark.slow
@pytest.mark.parametrize("lang", PROGRAMS)
def test_each_sample_sends_the_request_of_its_example(lang, tmp_path):
    command, name, join = PROGRAMS[lang]
    require(command[0], *({"curl"} & {lang}))
    with recording() as (address, sent):
        program = tmp_path / name
        program.write_text(join(samples(lang)).replace(BASE, address))
        environment = os.environ | {"SIGNPOST_TOKEN": TOKEN, "GOCACHE": str(tmp_path)}
        ran = subprocess.run(
            [*command, program],
            env=environment,
            capture_output=True,
            check=False,
            timeout=200,
        )
        assert ran.returncode == 0, ran.stderr
    described = expected()
    assert len(sent) == len(described) > 30
    for seen, wanted in zip(sent, described, strict=True):
        pattern = re.escape(wanted.target).replace(r"\*", r"[^/?{}]+") + r"(\?[^{}]+)?"
        assert re.fullmatch(pattern, seen.target), (seen.target, wanted.target)
        assert seen._replace(target=wanted.target) == wanted


def test_the_go_samples_that_ran_by_hand_are_the_same():
    text = joined(samples("go"))
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST
