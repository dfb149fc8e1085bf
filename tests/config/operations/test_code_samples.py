"""The code samples of the reference: each sends the request of its example, in every language."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, NamedTuple

import pytest
from werkzeug import Request

from config.operations.code_samples import BASE
from tests.documented import DOCUMENT
from tests.tools import output_of, require

TOKEN = "sample-token"
BEARERS = {"recordingBearer", "gatewayKey", "metricsToken"}


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


# language: its program, and the end of the file's name
PROGRAMS = {
    "curl": (["bash"], "sh"),
    "python": ([sys.executable], "py"),
    "typescript": (["node"], "mjs"),
    "go": (["go", "run"], "go"),
}


def program(lang: str) -> list[str]:
    """Return the files of one program that runs all samples: Go takes seconds to build one."""
    sources = samples(lang)
    if lang == "go":
        calls = "\n".join(f"sample{n}()" for n in range(len(sources)))
        return [
            *(
                source.replace("func main()", f"func sample{n}()")
                for n, source in enumerate(sources)
            ),
            f"package main\n\nfunc main() {{\n{calls}\n}}\n",
        ]
    start, end = ("", "") if lang == "python" else ("{\n", "}\n")
    return ["".join(start + source + end for source in sources)]


def sent_by(request: Request) -> Sent:
    fields = request.json if request.is_json else request.form.to_dict()
    token = request.headers.get("Authorization")
    return Sent(request.method, request.full_path.rstrip("?"), token, fields or None)


@pytest.mark.slow
@pytest.mark.parametrize("lang", PROGRAMS)
def test_each_sample_sends_the_request_of_its_example(lang, tmp_path, httpserver):
    command, suffix = PROGRAMS[lang]
    require(command[0], *({"curl"} & {lang}))
    httpserver.expect_request(re.compile("")).respond_with_json({})
    environment = os.environ | {"SIGNPOST_TOKEN": TOKEN, "GOCACHE": str(tmp_path)}
    files = []
    for n, source in enumerate(program(lang)):
        files.append(tmp_path / f"sample{n}.{suffix}")
        # The one mark of TypeScript that Node does not read.
        plain = source.replace("body!", "body")
        files[-1].write_text(plain.replace(BASE, httpserver.url_for("").rstrip("/")))
    output_of([*command, *files], env=environment)
    described = expected()
    assert len(httpserver.log) == len(described) > 30
    for (request, _), wanted in zip(httpserver.log, described, strict=True):
        sent = sent_by(request)
        pattern = re.escape(wanted.target).replace(r"\*", r"[^/?{}]+") + r"(\?[^{}]+)?"
        assert re.fullmatch(pattern, sent.target), (sent.target, wanted.target)
        assert sent._replace(target=wanted.target) == wanted
