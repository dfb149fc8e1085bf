"""The command that receives and shows webhooks."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import requests
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import UserFactory
from tests.running import PATIENCE_S, until
from tests.signatures import sha256_signature
from webhooks_core.management.commands.webhooks_listen import Command
from webhooks_core.models import Endpoint

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


class Heard(NamedTuple):
    """What a client returned, and what the command printed meanwhile."""

    answer: Any
    out: str
    err: str


@pytest.fixture
def listen():
    """Return a function that runs the command until a client, which gets its URL, has ended."""
    handlers = {
        each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)
    }

    def listen(client: Callable[[str], object], *options: str) -> Heard:
        out, err = StringIO(), StringIO()

        def url() -> str:
            match = re.search("Listening on (.+?),", out.getvalue() + err.getvalue())
            return match[1] if match else ""

        def run_client() -> object:
            try:
                until(url, "an address")
                return client(url())
            finally:
                os.kill(os.getpid(), signal.SIGINT)

        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(run_client)
            arguments = ("webhooks_listen", "--port", "0", *options)
            call_command(*arguments, stdout=out, stderr=err)
        return Heard(answer.result(), out.getvalue(), err.getvalue())

    yield listen
    for number, handler in handlers.items():
        signal.signal(number, handler)


def post(url: str, headers: dict[str, str] | None = None) -> int:
    return requests.post(url, BODY, headers=headers, timeout=PATIENCE_S).status_code


def raw(url: str, request: bytes) -> bytes:
    """Send bytes and return the answer until the end of the connection."""
    address = urlsplit(url)
    with socket.create_connection(
        (address.hostname, address.port), timeout=PATIENCE_S
    ) as client:
        client.sendall(request)
        answer = b""
        while part := client.recv(4096):
            answer += part
    return answer


def test_an_event_is_shown_with_its_ids_its_verification_and_its_body(listen):
    heard = listen(
        lambda url: [post(url, fresh()), post(url, fresh(secret="other"))],
        *("--secret", "x", "--secret", SECRET),
    )
    assert heard.answer == [204, 204]
    assert "✔ summary.completed  evt_1  dlv_1" in heard.out
    assert "recording signature verified" in heard.out
    assert '  "type": "summary.completed",' in heard.out
    assert "✘ summary.completed" in heard.out


def test_answers_follow_the_given_statuses_and_the_last_one_repeats(listen):
    statuses = ("--status", "500", "--status", "404", "--status", "204")
    heard = listen(lambda url: [post(url) for _ in range(4)], *statuses, "--quiet")
    assert heard.answer == [500, 404, 204, 204]
    assert "→ 204" in heard.out
    assert '"type"' not in heard.out


def test_json_is_one_object_a_line_and_an_answer_can_be_late(listen, settings):
    settings.WEBHOOK_LISTEN_SECRETS = ["other", SECRET]
    head = b"POST //a/%2F? HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"

    def client(url: str) -> float:
        began = time.monotonic()
        assert post(url, fresh()) == 204
        took = time.monotonic() - began
        assert raw(url, head + b"{}").split()[1] == b"204"
        return took

    heard = listen(client, "--json", "--delay", "0.2")
    assert heard.answer >= 0.2
    record, odd = map(json.loads, heard.out.splitlines())
    assert record["verified"] is True
    assert record["body"] == BODY.decode()
    assert (record["event_id"], record["status"]) == ("evt_1", 204)
    assert odd["path"] == "//a/%2F?"


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
    listen, request_, status
):
    heard = listen(lambda url: (raw(url, request_).split()[1], post(url)))
    assert heard.answer == (status, 204)
    assert f"(a request was refused: {status.decode()} " in heard.err
    assert "\x1b" not in heard.out + heard.err


def test_a_broken_connection_does_not_affect_the_next_one(listen):
    def client(url: str) -> int:
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as broken:
            broken.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123")
        return post(url)

    heard = listen(client)
    assert heard.answer == 204
    assert "Traceback" not in heard.out + heard.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--status", "99"), "'99' is not a status from 200 to 599"),
        (("--status", "no"), "'no' is not a status"),
        (("--port", "65536"), "'65536' is not a whole number"),
        (("--delay", "-1"), "'-1' is not a number of seconds"),
        (("--delay", "nan"), "'nan' is not a number of seconds"),
        (("--host", "192.0.2.1"), "cannot listen on 192.0.2.1 port 9000"),
        (("--host", "a\0"), "cannot listen on a"),
    ],
)
def test_an_invalid_option_is_one_clear_line(capsys, options, words):
    with pytest.raises(SystemExit) as exit_:
        Command().run_from_argv(["manage.py", "webhooks_listen", *options])
    assert exit_.value.code != 0
    assert words in capsys.readouterr().err


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("subscriber", "words"),
    [
        ("recording:nobody", "there is no user 'nobody'"),
        ("nothing:acme", "PRODUCT is one of "),
    ],
)
def test_who_cannot_be_subscribed_is_named(subscriber, words):
    with pytest.raises(CommandError, match=f"--subscribe: {words}"):
        call_command("webhooks_listen", "--port", "0", "--subscribe", subscriber)
    assert not Endpoint.objects.exists()


@pytest.mark.django_db
def test_a_receiver_is_subscribed_as_long_as_it_listens(monkeypatch):
    UserFactory.create(username="ada")
    seen = []

    def serve(self, receiver):
        endpoint = Endpoint.objects.get()
        seen.append((endpoint.url == f"{receiver.url}/", endpoint.event_types))
        assert self._secrets == endpoint.secrets(now=timezone.now())

    monkeypatch.setattr(Command, "_serve", serve)
    call_command("webhooks_listen", "--port", "0", "--subscribe", "recording:ada")
    assert seen == [(True, ["summary.completed", "webhook.ping"])]
    assert not Endpoint.objects.filter(deleted_at=None).exists()
