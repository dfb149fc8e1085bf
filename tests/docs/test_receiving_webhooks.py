"""The verification samples of the documentation, run against signatures that the engine makes."""

from __future__ import annotations

import json
import subprocess
import time

import pytest

from tests.docs.samples import sample
from tests.signatures import sha256_signature, timestamped_signature
from tests.tools import needs
from webhooks_core import secrets

PAGE = "receiving-webhooks.md"
BODY = '{"id":"evt_1","text":"Grüße 👋"}'.encode()
needs_node = needs("node")

# What is tampered with, and whether the delivery is still genuine.
EMPTY = {"no secret": "", "blank secret": " ", "bare secret": "whsec_"}
CASES = [
    ("nothing", True),
    *((case, False) for case in EMPTY),
    ("body", False),
    ("secret", False),
    ("signature", False),
    ("old", False),
    ("nonsense", False),
]


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
    *(
        None,
        "",
        " ",
        "\u00b2",
        "1\u00b2",
        "\u0661\u0662",
        "gr\u00fc\u00dfe",
        "\ud800",
        "\0",
    ),
    *("9" * 400, "9" * 5000, f"-{NOW}", f"+{NOW}", f" {NOW}", f"{NOW} ", f"{NOW}\n"),
    *(
        f"{NOW}.0",
        f"{NOW}e0",
        "0x10",
        f"{NOW[:4]}_{NOW[4:]}",
        f"{NOW},{NOW}",
        "nan",
        "inf",
    ),
    *(int(NOW), float(NOW), True, [NOW], [[NOW]], {"t": NOW}, NOW.encode(), b"\xff"),
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
        f"t={NOW},v1=\u00e9",
    ),
    *(
        f"t={NOW}",
        f"t={NOW},v1=",
        f"t={NOW},v1",
        f"t={NOW},v1=\ud800",
        "sha256=",
        "sha256",
    ),
    *(f"t={NOW},t={NOW},v1=x", "t=" + "9" * 400 + ",v1=x", "t=-1,v1=x", "t,v1=x"),
    *(f"t={NOW}," + "v1=x," * 50_000, "sha256=\u00e9", "sha256=" + "0" * 10**6),
]


def python(name: str, *arguments: object) -> bool:
    namespace: dict[str, object] = {}
    exec(compile(sample(PAGE, "python", name), name, "exec"), namespace)  # noqa: S102
    verdict: bool = namespace["verify"](*arguments)  # type: ignore[operator]
    return verdict


def javascript(name: str, secret: str, given: object, body: bytes) -> bool:
    call = (
        f"console.log(verify({json.dumps(secret)}, {json.dumps(given)}, "
        f"Buffer.from({json.dumps(body.hex())}, 'hex')))"
    )
    done = subprocess.run(
        ["node", "-e", sample(PAGE, "javascript", name) + call],
        capture_output=True,
        text=True,
        check=True,
    )
    return bool(json.loads(done.stdout))


@pytest.mark.parametrize(("case", "genuine"), CASES)
@pytest.mark.spec("recording", "the verifier compares in constant time, before parsing")
def test_the_python_sample_verifies_recording(case, genuine):
    assert python("verify-recording", *recording(case)) is genuine


@pytest.mark.parametrize(("case", "genuine"), CASES)
def test_our_helper_verifies_the_gateway(case, genuine):
    assert python("verify-gateway-helper", *gateway(case)) is genuine


@pytest.mark.parametrize("name", ["verify-gateway", "verify-gateway-helper"])
def test_tolerance_0_skips_the_freshness_check(name):
    secret, header, body = gateway("old")
    assert not python(name, secret, header, body, 300)
    assert python(name, secret, header, body, 0)


@pytest.mark.parametrize(("case", "genuine"), CASES)
def test_the_python_sample_verifies_the_gateway(case, genuine):
    assert python("verify-gateway", *gateway(case)) is genuine


@needs_node
@pytest.mark.parametrize(("case", "genuine"), CASES)
def test_the_javascript_sample_verifies_recording(case, genuine):
    secret, headers, body = recording(case)
    lower = {name.lower(): value for name, value in headers.items()}
    assert javascript("verify-recording", secret, lower, body) is genuine


@needs_node
@pytest.mark.parametrize(("case", "genuine"), CASES)
def test_the_javascript_sample_verifies_the_gateway(case, genuine):
    assert javascript("verify-gateway", *gateway(case)) is genuine


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
    done = subprocess.run(
        ["node", "-"],
        input=sample(PAGE, "javascript", name) + script,
        capture_output=True,
        text=True,
        check=True,
    )
    verdicts: list[object] = json.loads(done.stdout)
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
