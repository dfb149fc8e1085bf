"""The command that receives and shows webhooks."""

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

import pytest
import requests
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import UserFactory
from tests.hostile import CONTROLS, is_printable
from tests.running import PATIENCE_S, until
from tests.signatures import sha256_signature
from webhooks_core import endpoints, profiles
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


def test_an_event_is_one_line_with_its_ids_and_its_verification(listen):
    heard = listen(
        lambda url: [post(url, fresh()), post(url, fresh(secret="other")), post(url)],
        *("--secret", "x", "--secret", SECRET),
        *("--status", "500", "--status", "204"),
    )
    assert heard.answer == [500, 204, 204]
    good, bad, unsigned = (line for line in heard.out.splitlines() if "→" in line)
    shown = "✔ summary.completed  evt_1  dlv_1  (recording signature verified) → 500"
    assert good.endswith(shown)
    assert "✘ summary.completed" in bad
    assert "not signed: no X-" in unsigned


@pytest.mark.parametrize("hostile", CONTROLS)
def test_no_received_text_reaches_the_terminal_as_a_control_sequence(listen, hostile):
    body = json.dumps({"id": hostile, "type": hostile}).encode()
    heard = listen(lambda url: requests.post(url, body, timeout=PATIENCE_S).status_code)
    assert heard.answer == 204
    assert is_printable(heard.out)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("subscriber", "words"),
    [
        ("recording:nobody", "there is no user named 'nobody'"),
        ("nothing:acme", "--subscribe: PRODUCT is one of "),
    ],
)
def test_who_cannot_be_subscribed_is_named(subscriber, words):
    with pytest.raises(CommandError, match=words):
        call_command("webhooks_listen", "--port", "0", "--subscribe", subscriber)
    assert not Endpoint.objects.exists()


@pytest.mark.django_db
def test_a_full_quota_says_what_to_do():
    owner = UserFactory.create(username="ada")
    quota = profiles.get("recording").quota
    for number in range(quota):
        endpoints.create(
            profile="recording",
            owner=str(owner.pk),
            url=f"https://93.184.216.34/{number}",
            event_types=["summary.completed"],
        )
    words = f"ada has {quota} of {quota} endpoints: delete one"
    with pytest.raises(CommandError, match=words):
        call_command("webhooks_listen", "--port", "0", "--subscribe", "recording:ada")


def test_a_taken_port_names_the_option():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CommandError, match=f"{port}: it is taken.*--port N"):
            call_command("webhooks_listen", "--port", str(port))


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
    assert seen == [(True, ["summary.completed"])]
    assert not Endpoint.objects.filter(deleted_at=None).exists()
