from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.receiver import receiver
from tests.signatures import sha256_signature, timestamped_signature
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core import profiles
from webhooks_core.models import Delivery, EndpointSecret
from webhooks_core.secrets import make
from webhooks_core.signing.diagnosis import diagnose
from webhooks_core.signing.verification import Received, verify

SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
AT = 1_790_000_000
BODY = '{"id":"evt_1","text":"Grüße"}'.encode()


def received(headers: dict[str, str], body: bytes = BODY) -> Received:
    return Received(path="/", headers=headers, body=body, at=AT + 5.0)


def request(scheme: str, *, secret=SECRET, timestamp: object = AT, body=BODY, edit=str):
    """Return what was signed rightly, with a header that `edit` may have changed."""
    if scheme == "recording":
        signature = edit(sha256_signature(secret, AT, BODY))
        headers = {"x-recording-timestamp": str(timestamp)}
        return received(headers | {"x-recording-signature": signature}, body)
    older = [make()] if edit is str else []  # whose digest an edit would leave sound
    value = timestamped_signature([*older, secret], AT, BODY)
    value = edit(value.replace(f"t={AT}", f"t={timestamp}"))
    return received({"x-gateway-signature": value}, body)


def parts(received, *secrets: str, **more) -> list[str]:
    faults = diagnose(received, secrets=secrets or (SECRET,), **more)
    return [str(fault.part) for fault in faults]


both = pytest.mark.parametrize("scheme", ["recording", "gateway"])


def test_a_product_of_another_project_is_diagnosed_by_its_own_profile(shop):
    sold = received({"x-shop-signature": timestamped_signature([SECRET], AT, BODY)})
    assert parts(sold) == []
    assert parts(replace(sold, body=BODY + b"\n")) == ["body"]
    [fault] = diagnose(replace(sold, headers={}), secrets=[SECRET])
    assert fault.part == "header"
    assert "X-Shop-Signature" in fault.message
    assert "X-Gateway-Signature" in fault.message


def test_products_that_share_a_prefix_are_told_apart_by_what_fits(shop):
    shared = replace(shop, header_prefix="X-Gateway", signature_scheme="sha256")
    profiles.register(shared)
    signature = sha256_signature(SECRET, AT, BODY)
    headers = {"x-gateway-signature": signature, "x-gateway-timestamp": str(AT)}
    assert parts(received(headers)) == []
    verification = verify(received(headers), secrets=[SECRET], tolerance_s=300)
    assert verification == (True, "shop signature verified")


@both
def test_a_genuine_request_has_no_fault(scheme):
    assert parts(request(scheme)) == []
    assert parts(request(scheme), make(), SECRET, tolerance_s=300) == []


BARE = SECRET.removeprefix("whsec_")


@both
@pytest.mark.parametrize("given", [SECRET + "\n", BARE, f" {BARE} "])
def test_the_secret_is_blamed(scheme, given):
    assert parts(request(scheme), given) == ["secret"]


@both
@pytest.mark.parametrize("timestamp", [AT * 1000 + 7, "soon", "", "-1"])
def test_the_timestamp_is_blamed(scheme, timestamp):
    assert parts(request(scheme, timestamp=timestamp)) == ["timestamp"]


@both
@pytest.mark.parametrize("age", [301, -301])
def test_an_old_timestamp_is_blamed_when_age_counts(scheme, age):
    late = replace(request(scheme), at=AT + age)
    assert parts(late, tolerance_s=300) == ["timestamp"]
    assert parts(late) == []


@both
@pytest.mark.parametrize(
    "body",
    [
        BODY + b"\n",
        json.dumps(json.loads(BODY)).encode(),
        json.dumps(json.loads(BODY), ensure_ascii=False, indent=2).encode(),
    ],
)
def test_the_body_is_blamed(scheme, body):
    assert parts(request(scheme, body=body)) == ["body"]


def base64_of(value: str) -> str:
    head, _, digest = value.rpartition("=")
    return f"{head}={base64.b64encode(bytes.fromhex(digest)).decode()}"


EDITS = {
    "quotes": lambda value: f'"{value}"',
    "upper case": lambda value: value[:-64] + value[-64:].upper(),
    "base64": base64_of,
    "cut off": lambda value: value[:-1],
    "empty": lambda _: "",
    "nonsense": lambda _: "nonsense",
}


@both
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_the_header_is_blamed(scheme, edit):
    assert parts(request(scheme, edit=edit)) == ["header"]


def test_a_bare_digest_is_blamed_on_the_header():
    bare = request("recording", edit=lambda value: value.removeprefix("sha256="))
    assert parts(bare) == ["header"]


@both
def test_all_faults_are_reported_together(scheme):
    late = replace(request(scheme, body=BODY + b"\n"), at=AT + 301.0)
    assert parts(late, SECRET + " ", tolerance_s=300) == ["secret", "body", "timestamp"]


@both
@pytest.mark.parametrize("empty", ["", " ", "whsec_"])
def test_an_empty_secret_is_a_fault_also_beside_one_that_fits(scheme, empty):
    for signed in (request(scheme), request(scheme, secret=empty)):
        for given in ([empty], [SECRET, empty], [empty, SECRET]):
            assert diagnose(signed, secrets=given) == [("secret", "is empty")]
            verification = verify(signed, secrets=given, tolerance_s=0)
            assert not verification.is_verified
            assert verification.message.endswith("refused: a secret is empty")


@both
def test_an_unexplained_signature_leaves_secret_and_body(scheme):
    assert parts(request(scheme), make()) == ["secret", "body"]
    assert parts(request(scheme, body=b"{}")) == ["secret", "body"]
    assert parts(request(scheme, timestamp=AT + 1)) == ["secret", "body"]


@pytest.mark.parametrize("given", [SECRET + "\n", "whsec_other"])
def test_no_message_contains_a_secret(given):
    faults = diagnose(request("recording"), secrets=[given])
    assert given.strip().removeprefix("whsec_") not in str(faults)


# ── The command ─────────────────────────────────────────────────────────────────────


def run(path, *options: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("webhooks_verify", str(path), *options, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "body"
    path.write_bytes(BODY)
    return path


SIGNATURE = f"x-recording-signature: {sha256_signature(SECRET, AT, BODY)}"
HEADERS = ("-H", f"X-Recording-Timestamp: {AT}", "-H", SIGNATURE)


def test_the_exit_status_shows_whether_the_signature_is_genuine(file):
    assert run(file, *HEADERS, "--secret", SECRET) == (0, "The signature holds.\n")
    file.write_bytes(BODY + b"\n")
    code, output = run(file, *HEADERS, "--secret", SECRET)
    assert code == 1
    assert output.startswith("body: ")
    assert run(file, *HEADERS, "--secret", "") == (1, "secret: is empty\n")
    code, output = run(file, *HEADERS, "--secret", SECRET, "--json")
    assert code == 1
    assert json.loads(output)["faults"][0]["part"] == "body"


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ((), "no secret"),
        (("--secret", "s", "-H", "nonsense"), "is not `Name: value`"),
        (("--secret", "s", "--delivery", "dlv_1"), "there is no delivery"),
        (("--secret", "s"), "cannot read"),
    ],
)
def test_unusable_arguments_exit_with_2(db, file, options, output):
    if output == "cannot read":
        file.unlink()
    with pytest.raises(CommandError, match=output) as raised:
        run(file, *options)
    assert raised.value.returncode == 2


@pytest.fixture
def delivered(transactional_db, plain, tmp_path):
    """What a receiver got of a real delivery: the delivery, its options and its body."""
    with receiver(204) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        dispatch()
    (got,) = server.requests
    header = f"X-Plain-Signature: {got.headers['X-Plain-Signature']}"
    path = tmp_path / "got"
    path.write_bytes(got.body)
    return path, ("--delivery", only_delivery().public_id, "-H", header)


def test_a_real_delivery_verifies_with_its_endpoints_secret(delivered):
    path, options = delivered
    assert run(path, *options) == (0, "The signature holds.\n")


def test_compared_with_a_delivery_every_change_is_reported_exactly(delivered):
    path, options = delivered
    body = path.read_bytes()
    path.write_bytes(body[:10] + b"#" + body[11:])
    assert "differ from byte 11 on" in run(path, *options)[1]
    code, output = run(path, *options, "--secret", make())
    assert code == 1
    blamed = [line.partition(":")[0] for line in output.splitlines()]
    assert blamed == ["secret", "body"]


def test_a_timestamp_that_no_attempt_has_is_reported(delivered):
    path, (*options, header) = delivered
    signed_at = re.findall(r"t=(\d+)", header)[0]
    other = header.replace(signed_at, str(int(signed_at) - 7))
    code, text = run(path, *options, other)
    assert code == 1
    assert text.startswith("timestamp: ")
    assert f"was signed at {signed_at}" in text


def test_an_unreadable_secret_is_reported(delivered, settings):
    EndpointSecret.objects.update(value="nonsense")
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    with pytest.raises(CommandError, match="WEBHOOK_SECRET_KEYS") as raised:
        run(delivered[0], *delivered[1])
    assert raised.value.returncode == 2
    assert Delivery.objects.count() == 1
