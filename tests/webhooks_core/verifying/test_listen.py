"""The command that receives and shows webhooks."""

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

from tests.running import PATIENCE_S, Running, environment, free_port, running
from tests.signatures import sha256_signature
from webhooks_core.management.commands.webhooks_listen import Command

pytestmark = pytest.mark.slow

SECRET = "whsec_c2VjcmV0"
BODY = b'{"id":"evt_1","type":"summary.completed","data":{"title":"\xc3\x84rger"}}'


def fresh(secret: str = SECRET) -> dict[str, Any]:
    """Return the headers of a request that is signed now."""
    now = int(time.time())
    return {
        "X-Recording-Delivery": "dlv_1",
        "X-Recording-Timestamp": str(now),
        "X-Recording-Signature": sha256_signature(secret, now, BODY),
    }


class Listener:
    def __init__(self, process: Running, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def post(self, headers: dict[str, str] | None = None) -> int:
        url = self.url + "/hook"
        return requests.post(url, BODY, headers=headers, timeout=PATIENCE_S).status_code

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


def test_an_event_is_shown_with_its_ids_its_verification_and_its_body(listen):
    listener = listen("--secret", "x", "--secret", SECRET)
    assert listener.post(fresh()) == 204
    listener.process.wait_for("recording signature verified")
    assert "✔ summary.completed  evt_1  dlv_1" in listener.process.output
    assert '  "type": "summary.completed",' in listener.process.output
    assert listener.post(fresh(secret="other")) == 204
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
    assert listener.post(fresh()) == 204
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
    listener_of_module.post(fresh())
    listener_of_module.process.wait_for("\\xc4rger")


def test_a_broken_connection_does_not_affect_the_next_one(listener_of_module):
    listener = listener_of_module
    with socket.create_connection(("127.0.0.1", listener.port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123")
    assert listener.post() == 204
    assert "Traceback" not in listener.process.output


REFUSED = "'99' is not a status from 200 to 599"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--status", "99"), REFUSED),
        (("--status", "no"), "'no' is not a status"),
        (("--port", "65536"), "'65536' is not a whole number"),
        (("--delay", "-1"), "'-1' is not a number of seconds"),
        (("--delay", "nan"), "'nan' is not a number of seconds"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1 port 9000"),
    ],
)
def test_an_invalid_option_is_one_clear_line(capsys, options, words):
    with pytest.raises(SystemExit) as exit_:
        Command().run_from_argv(["manage.py", "webhooks_listen", *options])
    assert exit_.value.code != 0
    assert words in capsys.readouterr().err


def test_a_refused_command_line_has_no_traceback():
    arguments = ("manage.py", "webhooks_listen", "--status", "99")
    with running(*arguments, environment=environment()) as process:
        assert process.status() != 0
        assert REFUSED in process.output
        assert "Traceback" not in process.output
