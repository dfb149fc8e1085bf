"""Every verifier, of the engine and of the documentation, against one table of attacks."""

import hmac
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.samples import DOCS, sample
from tests.tools import require
from webhooks_core.signing.schemes import SCHEMES, SignatureError, SignatureHeaders

SAMPLES = DOCS / "samples"
DRIVERS = Path(__file__).parent / "drivers"
SECRET, OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "whsec_b3RoZXI="
BODY = '{"id":"evt_1","text":"Grüße 👋"}'.encode() + b"\xff\x00"
PROGRAMS = {
    "node": ["node", "driver.cjs"],
    "ruby": ["ruby", "driver.rb"],
    "php": ["php", "driver.php"],
    "go": ["go", "run", "driver.go", "verify.go"],
    "java": ["java", "-cp", ".", "Driver"],
}


class Case(NamedTuple):
    name: str
    headers: Mapping[str, str]
    is_genuine: bool = False
    secret: str = SECRET
    body: bytes = BODY


def digest(secret: str, timestamp: object, body: bytes = BODY) -> str:
    """As the specifications define it, by the standard library alone."""
    signed = f"{timestamp}.".encode() + body
    return hmac.new(secret.encode(), signed, "sha256").hexdigest()


def recording(timestamp: object, signature: str | None = None) -> dict[str, str]:
    """Headers of recording; by default with a signature that fits this timestamp."""
    value = signature or f"sha256={digest(SECRET, timestamp)}"
    return {"X-Recording-Timestamp": str(timestamp), "X-Recording-Signature": value}


def gateway(signature: str) -> dict[str, str]:
    return {"X-Gateway-Signature": signature}


def cases() -> Iterator[Case]:
    """Each attack once for each scheme; what is signed correctly is wrong in one point only."""
    now = int(time.time())
    good = digest(SECRET, now)
    yield Case("recording", recording(now), is_genuine=True)
    yield Case("gateway", gateway(f"t={now},v1={good}"), is_genuine=True)
    rotating = f"t={now},v1={digest(OTHER, now)},v1={good}"
    yield Case("gateway, rotating", gateway(rotating), is_genuine=True)
    yield Case("gateway, spaces", gateway(f"t={now}, v1={good}"), is_genuine=True)
    for headers in (recording(now), gateway(f"t={now},v1={good}")):
        yield Case("another body", headers, body=BODY + b" ")
        yield Case("another secret", headers, secret=OTHER)
    for name, signed in {
        "old": now - 600,
        "future": now + 600,
        "negative": -now,
        "plus": f"+{now}",
        "fraction": f"{now}.0",
        "exponent": f"{now}e0",
        "underscore": f"{str(now)[:4]}_{str(now)[4:]}",
        "hexadecimal": hex(now),
        "other digits": str(now).translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
        "superscript": "²",
        "long": "9" * 400,
        "not a number": "nan",
        "empty": "",
    }.items():
        yield Case(f"time: {name}", recording(signed))
        yield Case(f"time: {name}", gateway(f"t={signed},v1={digest(SECRET, signed)}"))
    for empty in ("", " ", "whsec_"):
        forged = digest(empty, now)
        yield Case("empty secret", recording(now, f"sha256={forged}"), secret=empty)
        yield Case("empty secret", gateway(f"t={now},v1={forged}"), secret=empty)
    for name, value in {
        "cut": f"sha256={good[:-1]}",
        "longer": f"sha256={good}0",
        "scheme": f"sha1={good}",
        "no scheme": good,
        "empty": "sha256=",
        "capitals": f"sha256={good.upper()}",
        "not ASCII": "sha256=é",
        "huge": "sha256=" + "0" * 100_000,
    }.items():
        yield Case(f"signature: {name}", recording(now, value))
    for name, value in {
        "cut": f"t={now},v1={good[:-1]}",
        "another scheme": f"t={now},v0={good}",
        "no time": f"v1={good}",
        "two times": f"t={now},t={now},v1={good}",
        "no signature": f"t={now}",
        "empty signature": f"t={now},v1=",
        "no values": "t,v1",
        "not ASCII": f"t={now},v1=é",
        "many": f"t={now}," + "v1=x," * 20_000,
    }.items():
        yield Case(f"signature: {name}", gateway(value))
    yield Case("nothing", {})
    yield Case("one header", {"X-Recording-Signature": f"sha256={good}"})
    yield Case("one header", {"X-Recording-Timestamp": str(now)})


def engine(case: Case) -> bool:
    """The engine's own verifier, as receivers in Python may import it."""
    head = case.headers
    if "X-Gateway-Signature" in head:
        scheme, given = "timestamped", SignatureHeaders(head["X-Gateway-Signature"])
    else:
        names = ("X-Recording-Signature", "X-Recording-Timestamp")
        scheme, given = "sha256", SignatureHeaders(*(head.get(n, "") for n in names))
    try:
        SCHEMES[scheme].verify(
            case.secret, given, body=case.body, now=time.time(), tolerance_s=300
        )
    except SignatureError:
        return False
    return True


def of_page() -> Callable[..., bool]:
    """The code of the page on receiving webhooks."""
    names: dict[str, Any] = {}
    exec(sample("receiving-webhooks.md", "python", "verify"), names)  # noqa: S102
    verify: Callable[..., bool] = names["verify"]
    return verify


def check(verdicts: Mapping[int, bool], table: list[Case]) -> None:
    wrong = [
        case.name for n, case in enumerate(table) if verdicts[n] is not case.is_genuine
    ]
    assert wrong == []


@pytest.mark.spec("recording", "the verifier compares in constant time, before parsing")
def test_the_engine_accepts_what_is_genuine_alone():
    table = list(cases())
    check(dict(enumerate(map(engine, table))), table)


def test_the_sample_of_the_page_accepts_what_is_genuine_alone():
    verify, table = of_page(), list(cases())
    found = [verify(case.secret, case.headers, case.body) for case in table]
    check(dict(enumerate(found)), table)
    [old] = [
        c for c in table if c.name == "time: old" and "X-Gateway-Signature" in c.headers
    ]
    assert verify(old.secret, old.headers, old.body, tolerance_s=0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sample_accepts_what_is_genuine_alone(program, tmp_path):
    require(program)
    for file in [*SAMPLES.glob("[vV]erify.*"), *DRIVERS.iterdir()]:
        assert file.read_bytes().isascii()  # a compiler may read it as the locale says
        shutil.copy(file, tmp_path)
    if program == "java":
        require("javac")
        run(["javac", "Driver.java", "Verify.java"], tmp_path)
    table = list(cases())
    fields = [(c.secret.encode(), head(c), c.body) for c in table]
    lines = "".join(" ".join(part.hex() for part in row) + "\n" for row in fields)
    output = run(PROGRAMS[program], tmp_path, lines).split()
    assert len(output) == len(table)
    check({n: verdict == "1" for n, verdict in enumerate(output)}, table)


def test_the_vector_of_the_page_is_right():
    vector = json.loads(sample("receiving-webhooks.md", "json", "vector"))
    signed = digest(vector["secret"], vector["timestamp"], vector["body"].encode())
    assert vector["sha256"] == f"sha256={signed}"
    assert vector["timestamped"] == f"t={vector['timestamp']},v1={signed}"


def head(case: Case) -> bytes:
    return "\n".join(
        f"{name}: {value}" for name, value in case.headers.items()
    ).encode()


def run(command: list[str], folder: Path, lines: str = "") -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"GOCACHE": str(folder / "go-cache")},  # HOME may be read-only
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
