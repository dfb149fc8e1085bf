"""Run the verifiers of clients/, many requests at once, and say what each made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from signpost_receiver import SignatureError, verify

from tests.tools import needs, output_of

CLIENTS = Path(__file__).resolve().parent.parent.parent / "clients"
LANGUAGES = ["python", pytest.param("node", marks=needs("node"))]
# Reads requests as JSON, and prints the event or the error of each.
PROGRAM = """
const { SignatureError, verify } = require(process.argv[1]);
const requests = JSON.parse(require("node:fs").readFileSync(0));
console.log(JSON.stringify(requests.map(([secret, headers, body, options]) => {
  try {
    if (options.toleranceS === "NaN") options.toleranceS = NaN;
    return verify(secret, headers, Buffer.from(body, "hex"), options);
  } catch (error) {
    if (!(error instanceof SignatureError)) throw error;
    return error.message;
  }
})));
"""


class Request(NamedTuple):
    secret: Any
    headers: dict[str, Any]
    body: bytes
    now: float
    tolerance_s: float = 300
    prefixes: Sequence[str] = ("X-Recording", "X-Gateway")


def verdicts(language: str, requests: Sequence[Request]) -> list[Any]:
    """Return for each request its event, or the text of the SignatureError."""
    return {"python": _python, "node": _node}[language](requests)


def _python(requests: Sequence[Request]) -> list[Any]:
    found = list[Any]()
    for one in requests:
        options: dict[str, Any] = {
            "tolerance_s": one.tolerance_s,
            "prefixes": one.prefixes,
        }
        try:
            found.append(
                verify(one.secret, one.headers, one.body, now=one.now, **options)
            )
        except SignatureError as error:
            found.append(str(error))
    return found


def _options(one: Request) -> dict[str, Any]:
    tolerance = "NaN" if math.isnan(one.tolerance_s) else one.tolerance_s
    return {"toleranceS": tolerance, "prefixes": one.prefixes}


def _node(requests: Sequence[Request]) -> list[Any]:
    given = [
        (one.secret, one.headers, one.body.hex(), {"now": one.now} | _options(one))
        for one in requests
    ]
    output = output_of(
        ["node", "-e", PROGRAM, str(CLIENTS / "typescript")],
        input=json.dumps(given),
    )
    found: list[Any] = json.loads(output)
    return found
