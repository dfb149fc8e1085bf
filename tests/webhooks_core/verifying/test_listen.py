from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import requests

from tests import signatures
from tests.hostile import CONTROLS, is_printable
from tests.running import PATIENCE_S, Running, environment, free_port, running
from webhooks_core.management.commands.webhooks_listen import Command
from webhooks_core.verifying import terminal
from webhooks_core.verifying.verification import Received, verify

pytestmark = pytest.mark.slow

SECRET = "whsec_c2VjcmV0"
BODY = b'{"id":"evt_1","type":"summary.completed","data":{"title":"\xc3\x84rger"}}'


def received(body: bytes = BODY, *, at: float = 1_000, **headers: Any) -> Received:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Received(path="/hook", headers=named, body=body, at=at)


def recording(
    body: bytes = BODY, *, timestamp: int = 1_000, secret: str = SECRET
) -> dict[str, Any]:
    return {
        "x_recording_event": "summary.completed",
        "x_recording_delivery": "dlv_1",
        "x_recording_timestamp": str(timestamp),
        "x_recording_signature": signatures.sha256_signature(secret, timestamp, body),
    }


def gateway(
    body: bytes = BODY, *, timestamp: int = 1_000, secret: str = SECRET
) -> dict[str, Any]:
    return {
        "x_gateway_event": "ingest.completed",
        "x_gateway_delivery": "evt_1",
        "x_gateway_timestamp": str(timestamp),
        "x_gateway_signature": signatures.timestamped_signature(
            [secret], timestamp, body
        ),
    }


def catalog(
    body: bytes = BODY, *, timestamp: int = 1_000, secret: str = SECRET
) -> dict[str, Any]:
    return {
        "x_catalog_event": "book.created",
        "x_catalog_delivery": "dlv_1",
        "x_catalog_signature": signatures.timestamped_signature(
            [secret], timestamp, body
        ),
    }


@pytest.mark.parametrize(
    ("_case", "message", "secrets", "verified", "words"),
    [
        (
            "recording",
            received(**recording()),
            [SECRET],
            True,
            "recording signature verified",
        ),
        (
            "gateway",
            received(**gateway()),
            [SECRET],
            True,
            "gateway signature verified",
        ),
        (
            "catalog",
            received(**catalog()),
            [SECRET],
            True,
            "catalog signature verified",
        ),
        ("other catalog secret", received(**catalog()), ["x"], False, "no signature"),
        ("any secret", received(**recording()), ["x", SECRET], True, "verified"),
        ("no secret", received(**recording()), [], None, "not checked"),
        ("other secret", received(**recording()), ["x"], False, "no signature"),
        ("other body", received(b"{}", **recording()), [SECRET], False, "no signature"),
        ("old", received(at=1_301, **recording()), [SECRET], False, "too far from now"),
        ("old gateway", received(at=1_301, **gateway()), [SECRET], False, "too far"),
        (
            "no timestamp",
            received(**recording() | {"x_recording_timestamp": ""}),
            [SECRET],
            False,
            "not a unix time",
        ),
        (
            "no scheme",
            received(**recording() | {"x_recording_signature": "00"}),
            [SECRET],
            False,
            "is not sha256=",
        ),
        (
            "malformed gateway",
            received(**gateway() | {"x_gateway_signature": "v1=00"}),
            [SECRET],
            False,
            "is not t=",
        ),
        ("unsigned", received(), [SECRET], False, "not signed"),
    ],
)
def test_the_verification_says_which_part_of_a_signature_fails(
    _case, message, secrets, verified, words
):
    verification = verify(message, secrets=secrets, tolerance_s=300)
    assert verification.is_verified is verified
    assert words in verification.message


def test_a_product_of_another_project_is_verified_by_its_own_profile(shop):
    value = signatures.timestamped_signature([SECRET], 1_000, BODY)
    named: dict[str, Any] = {
        "x_shop_signature": value,
        "x_shop_event": "sold",
        "x_shop_delivery": "d",
    }
    verification = verify(received(**named), secrets=[SECRET], tolerance_s=300)
    assert (verification.is_verified, verification.message) == (
        True,
        "shop signature verified",
    )
    assert (received(**named).event_type, received(**named).delivery_id) == (
        "sold",
        "d",
    )
    unsigned = verify(received(), secrets=[SECRET], tolerance_s=300)
    assert "X-Shop-Signature" in unsigned.message


def test_names_come_from_the_headers_and_the_body():
    message = received(**recording())
    assert (message.event_type, message.event_id, message.delivery_id) == (
        "summary.completed",
        "evt_1",
        "dlv_1",
    )
    assert received().event_type == "summary.completed"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b"1", b"\xff", b'{"id":1}'])
def test_a_body_that_is_no_envelope_has_no_names(body):
    message = received(body)
    assert (message.event_type, message.event_id, message.delivery_id) == ("", "", "")


@pytest.mark.parametrize("hostile", [*CONTROLS, "\ud800"])
def test_no_received_text_reaches_the_terminal_as_a_control_sequence(hostile):
    message = received(
        json.dumps({"id": hostile, "type": hostile}).encode(),
        x_recording_event=hostile,
        x_recording_signature=hostile,
    )
    verification = verify(message, secrets=[SECRET], tolerance_s=300)
    for text in (
        terminal.one_line(message, verification, 204),
        terminal.body(message),
        terminal.body(received(hostile.encode("utf-8", "surrogatepass"))),
        terminal.as_json(message, verification, 204),
    ):
        assert hostile not in text
        assert is_printable(text)
        text.encode()


def test_a_body_is_indented_and_kept_readable():
    assert '\n  "id": "evt_1",\n' in terminal.body(received())
    assert "Ärger" in terminal.body(received())


def test_a_long_body_is_cut_with_a_note():
    shown = terminal.body(received(b"x" * (terminal.MAX_SHOWN + 7)))
    assert shown.endswith("… 7 more characters")


@pytest.mark.parametrize("depth", [300, 2_000, 1_000_000])
def test_a_deeply_nested_body_is_shown_unformatted(depth):
    assert terminal.body(received(b"[" * depth + b"]" * depth)).startswith("[[[[[")


# ── The command ─────────────────────────────────────────────────────────────────────


def as_sent(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


class Listener:
    def __init__(self, process: Running, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def post(self, **headers: str) -> int:
        return requests.post(
            self.url + "/hook", BODY, headers=as_sent(headers), timeout=PATIENCE_S
        ).status_code

    def raw(self, request: bytes) -> bytes:
        """Send bytes and return the answer until the end of the connection."""
        with socket.create_connection(
            ("127.0.0.1", self.port), timeout=PATIENCE_S
        ) as client:
            client.sendall(request)
            answer = b""
            while part := client.recv(4096):
                answer += part
        return answer


@contextmanager
def listening(*options: str, **variables: str) -> Iterator[Listener]:
    port = free_port()
    arguments = ("manage.py", "webhooks_listen", "--port", str(port), *options)
    with running(*arguments, environment=environment(**variables)) as process:
        process.wait_for("Listening on")
        yield Listener(process, port)
        if process.process.poll() is None:
            assert process.end() == 0
        assert "Traceback" not in process.output


@pytest.fixture
def listen() -> Iterator[Callable[..., Listener]]:
    with ExitStack() as stack:

        def listen(*options: str, **variables: str) -> Listener:
            return stack.enter_context(listening(*options, **variables))

        yield listen


def fresh(secret: str = SECRET) -> dict[str, Any]:
    return recording(timestamp=int(time.time()), secret=secret)


def test_an_event_is_shown_with_its_ids_its_verification_and_its_body(listen):
    listener = listen("--secret", "x", "--secret", SECRET)
    assert listener.post(**fresh()) == 204
    listener.process.wait_for("recording signature verified")
    assert "✔ summary.completed  evt_1  dlv_1" in listener.process.output
    assert '  "type": "summary.completed",' in listener.process.output
    assert listener.post(**fresh(secret="other")) == 204
    listener.process.wait_for("✘ summary.completed")
    assert listener.process.end() == 0


def test_answers_follow_the_given_statuses_and_the_last_one_repeats(listen):
    listener = listen(
        "--status", "500", "--status", "404", "--status", "204", "--quiet"
    )
    assert [listener.post() for _ in range(4)] == [500, 404, 204, 204]
    listener.process.wait_for("→ 204")
    assert '"type"' not in listener.process.output


def test_json_is_one_object_a_line_and_an_answer_can_be_late(listen):
    listener = listen(
        "--json", "--delay", "2", WEBHOOK_LISTEN_SECRETS=f"other,{SECRET}"
    )
    began = time.monotonic()
    assert listener.post(**fresh()) == 204
    assert time.monotonic() - began > 1.9
    listener.process.wait_for('"verified"')
    record = json.loads(next(line for line in listener.process.lines if line[0] == "{"))
    assert record["verified"] is True
    assert record["body"] == BODY.decode()
    assert (record["event_id"], record["status"]) == ("evt_1", 204)
    head = b"POST //a/%2F? HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
    assert listener.raw(head + b"{}").split()[1] == b"204"
    listener.process.wait_for("//a")
    record = json.loads([line for line in listener.process.lines if line[0] == "{"][-1])
    assert record["path"] == "//a/%2F?"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST / HTTP/1.1\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
        (b"POST / HTTP/1.1\r\nContent-Length: 8388609\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\n\r\n", b"501"),
        (b"\x1b[2J / HTTP/1.1\r\n\r\n", b"501"),
        (b"POST / HTTP/9.9\r\n\r\n", b"505"),
        (b"POST /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
    ],
)
def test_a_hostile_request_is_refused_and_the_next_one_is_served(
    listener_of_module, request_, status
):
    listener = listener_of_module
    assert listener.raw(request_).split()[1] == status
    assert listener.post() == 204
    assert "Traceback" not in listener.process.output
    assert "\x1b" not in listener.process.output


@pytest.fixture(scope="module")
def listener_of_module() -> Iterator[Listener]:
    with listening(PYTHONIOENCODING="ascii") as listener:
        yield listener
        assert listener.process.end(signal.SIGINT) == 0


def test_an_ascii_terminal_is_no_error(listener_of_module):
    listener_of_module.post(**fresh())
    listener_of_module.process.wait_for("\\xc4rger")


def test_a_broken_connection_does_not_affect_the_next_one(listener_of_module):
    listener = listener_of_module
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123")
    assert listener.post() == 204
    assert "Traceback" not in listener.process.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--status", "99"), "'99' is not a status from 200 to 599"),
        (("--status", "no"), "'no' is not a status"),
        (("--port", "65536"), "'65536' is not a whole number"),
        (("--delay", "-1"), "'-1' is not a number of seconds"),
        (("--delay", "nan"), "'nan' is not a number of seconds"),
        (("--delay", "soon"), "'soon' is not a number of seconds"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1 port 9000"),
    ],
)
def test_an_invalid_option_is_one_clear_line(capsys, options, words):
    with pytest.raises(SystemExit) as exit_:
        Command().run_from_argv(["manage.py", "webhooks_listen", *options])
    assert exit_.value.code != 0
    assert_is_refusal(capsys.readouterr().err, words)


def test_a_refused_command_line_has_no_traceback():
    arguments = ("manage.py", "webhooks_listen", "--status", "99")
    with running(*arguments, environment=environment()) as process:
        assert process.status() != 0
        assert_is_refusal(process.output, "'99' is not a status from 200 to 599")


def assert_is_refusal(output: str, words: str) -> None:
    assert words in output
    assert "Traceback" not in output
