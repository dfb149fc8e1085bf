"""The verification samples of the documentation, run against signatures that the engine makes."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

from tests.docs.samples import sample
from webhooks_core import secrets
from webhooks_core.signing import sha256_signature, timestamped_signature

PAGE = "receiving-webhooks.md"
BODY = '{"id":"evt_1","text":"Grüße 👋"}'.encode()
needs_node = pytest.mark.skipif(
    not shutil.which("node"), reason="node is not installed"
)

# What is tampered with, and whether the delivery is still genuine.
CASES = [
    ("nothing", True),
    ("body", False),
    ("secret", False),
    ("signature", False),
    ("old", False),
    ("nonsense", False),
]


def recording(case: str) -> tuple[str, dict[str, str], bytes]:
    secret = secrets.make()
    now = int(time.time()) - (600 if case == "old" else 0)
    signature = sha256_signature(secret, now, BODY)
    headers = {
        "X-Recording-Timestamp": "soon" if case == "nonsense" else str(now),
        "X-Recording-Signature": signature[:-1] if case == "signature" else signature,
    }
    body = BODY + b" " if case == "body" else BODY
    return (secrets.make() if case == "secret" else secret), headers, body


def gateway(case: str) -> tuple[str, str, bytes]:
    secret = secrets.make()
    now = int(time.time()) - (600 if case == "old" else 0)
    header = timestamped_signature([secrets.make(), secret], now, BODY)
    header = {"signature": header[:-1], "nonsense": "v1=,t="}.get(case, header)
    body = BODY + b" " if case == "body" else BODY
    return (secrets.make() if case == "secret" else secret), header, body


def python(name: str, *arguments: object) -> bool:
    namespace: dict[str, object] = {}
    exec(compile(sample(PAGE, "python", name), name, "exec"), namespace)  # noqa: S102
    return bool(namespace["verify"](*arguments))  # type: ignore[operator]


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
