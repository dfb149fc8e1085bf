"""The verification samples of the documentation, run against signatures that the engine makes."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest

from tests.docs.samples import sample
from tests.signatures import sha256_signature, timestamped_signature
from tests.tools import needs
from webhooks_core import secrets

PAGE = "receiving-webhooks.md"
BODY = '{"id":"evt_1","text":"Grüße 👋"}'.encode()
needs_node = needs("node")

EMPTY = {"no secret": "", "blank secret": " ", "bare secret": "whsec_"}
# What is tampered with; only with nothing the delivery is genuine.
CASES = ["nothing", *EMPTY, "body", "secret", "signature", "old", "nonsense"]


def recording(case: str) -> tuple[str, dict[str, str], bytes]:
    secret = EMPTY.get(case, secrets.make())
    now = int(time.time()) - (600 if case == "old" else 0)
    signature = sha256_signature(secret, now, BODY)
    headers = {
        "X-Recording-Timestamp": "soon" if case == "nonsense" else str(now),
        "X-Recording-Signature": signature[:-1] if case == "signature" else signature,
    }
    body = BODY + b" " if case == "body" else BODY
    return (secrets.make() if case == "secret" else secret), headers, body


def gateway(case: str) -> tuple[str, str, bytes]:
    secret = EMPTY.get(case, secrets.make())
    now = int(time.time()) - (600 if case == "old" else 0)
    header = timestamped_signature([secrets.make(), secret], now, BODY)
    header = {"signature": header[:-1], "nonsense": "v1=,t="}.get(case, header)
    body = BODY + b" " if case == "body" else BODY
    return (secrets.make() if case == "secret" else secret), header, body


# What a stranger may send in place of a header's value.
NOW = str(int(time.time()))
HOSTILE: list[object] = [
    *(None, "", " ", "\u00b2", "1\u00b2", "\u0661\u0662", "gr\u00fc\u00dfe", "\ud800"),
    *("\0", "9" * 400, "9" * 5000, "0x10", "nan", "inf", b"\xff"),
    *(f"-{NOW}", f"+{NOW}", f" {NOW}", f"{NOW} ", f"{NOW}\n", f"{NOW}.0", f"{NOW}e0"),
    *(f"{NOW[:4]}_{NOW[4:]}", f"{NOW},{NOW}", int(NOW), float(NOW), True),
    *([NOW], [[NOW]], {"t": NOW}, NOW.encode()),
]
HOSTILE_SIGNED: list[object] = [
    *HOSTILE,
    *(
        "t=",
        "v1=",
        "t=,v1=",
        "=",
        ",",
        "t",
        "v1",
        "t=\u00b2,v1=x",
        "t=-1,v1=x",
        "t,v1=x",
    ),
    *(f"t={NOW}", f"t={NOW},v1=", f"t={NOW},v1", f"t={NOW},v1=\u00e9"),
    *(f"t={NOW},v1=\ud800", f"t={NOW},t={NOW},v1=x", "t=" + "9" * 400 + ",v1=x"),
    *("sha256=", "sha256", "sha256=\u00e9", "sha256=" + "0" * 10**6),
    f"t={NOW}," + "v1=x," * 50_000,
]


def python(name: str, *arguments: object) -> bool:
    namespace: dict[str, object] = {}
    exec(compile(sample(PAGE, "python", name), name, "exec"), namespace)  # noqa: S102
    verdict: bool = namespace["verify"](*arguments)  # type: ignore[operator]
    return verdict


def node(script: str) -> Any:
    """Return what a script prints as JSON."""
    done = subprocess.run(
        ["node", "-"], input=script, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def javascript(name: str, secret: str, given: object, body: bytes) -> bool:
    if isinstance(given, dict):
        given = {name.lower(): value for name, value in given.items()}
    call = f"verify({json.dumps(secret)}, {json.dumps(given)}, Buffer.from('{body.hex()}', 'hex'))"
    verdict: bool = node(f"{sample(PAGE, 'javascript', name)}console.log({call})")
    return verdict


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("run", "name", "request_of"),
    [
        (python, "verify-recording", recording),
        (python, "verify-gateway", gateway),
        (python, "verify-gateway-helper", gateway),
        pytest.param(javascript, "verify-recording", recording, marks=needs_node),
        pytest.param(javascript, "verify-gateway", gateway, marks=needs_node),
    ],
)
@pytest.mark.spec("recording", "the verifier compares in constant time, before parsing")
def test_a_sample_takes_what_is_genuine_alone(run, name, request_of, case):
    assert run(name, *request_of(case)) is (case == "nothing")


@pytest.mark.parametrize("name", ["verify-gateway", "verify-gateway-helper"])
def test_tolerance_0_skips_the_freshness_check(name):
    secret, header, body = gateway("old")
    assert not python(name, secret, header, body, 300)
    assert python(name, secret, header, body, 0)


# ── Hostile headers ─────────────────────────────────────────────────────────────────


def hostile_recording() -> list[dict[str, object]]:
    """Every combination of one hostile header with a good other one, and headers left out."""
    _, good, _ = recording("nothing")
    cases: list[dict[str, object]] = [{}]
    cases += [{name: value} for name, value in good.items()]
    cases += [{**good, name: value} for name in good for value in HOSTILE_SIGNED]
    return cases


def hostile_gateway() -> list[object]:
    _, good, _ = gateway("nothing")
    time_part, *signatures = good.split(",")
    again = [f"{good},{time_part}", f"{time_part},{good}", ",".join(signatures)]
    return [*HOSTILE_SIGNED, *again]


def test_the_python_sample_refuses_hostile_headers_of_recording():
    for headers in hostile_recording():
        verdict = python("verify-recording", secrets.make(), headers, BODY)
        assert verdict is False, headers


@pytest.mark.parametrize("name", ["verify-gateway", "verify-gateway-helper"])
@pytest.mark.parametrize("tolerance_s", [300, 0])
def test_the_python_samples_refuse_hostile_headers_of_the_gateway(name, tolerance_s):
    for header in hostile_gateway():
        verdict = python(name, secrets.make(), header, BODY, tolerance_s)
        assert verdict is False, header


def javascript_each(name: str, given: list[object], *more: object) -> list[object]:
    """Return what the sample says of each value; bytes and what JSON lacks are left out."""
    values = [value for value in given if not has_bytes(value)]
    script = (
        f"const values = {json.dumps(values)};"
        "values.push(undefined, NaN, Symbol('t'), () => 1, new Map());"
        f"const more = {json.dumps(more)};"
        "console.log(JSON.stringify(values.map((value) =>"
        f" verify('whsec_x', value, Buffer.from('x'), ...more))))"
    )
    if name == "verify-recording":
        script = script.replace("value, Buffer", "value ?? {}, Buffer")
    verdicts: list[object] = node(sample(PAGE, "javascript", name) + script)
    assert len(verdicts) == len(values) + 5
    return verdicts


def has_bytes(value: object) -> bool:
    values = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(value, bytes) for value in values)


@needs_node
def test_the_javascript_sample_refuses_hostile_headers_of_recording():
    lower = [
        {name.lower(): value for name, value in headers.items()}
        for headers in hostile_recording()
    ]
    assert set(javascript_each("verify-recording", [*lower])) == {False}


@needs_node
@pytest.mark.parametrize("tolerance_s", [300, 0])
def test_the_javascript_sample_refuses_hostile_headers_of_the_gateway(tolerance_s):
    verdicts = javascript_each("verify-gateway", hostile_gateway(), tolerance_s)
    assert set(verdicts) == {False}
