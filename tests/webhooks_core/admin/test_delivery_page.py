"""The page of a delivery: shown in full and escaped, with nothing that must stay secret."""

from __future__ import annotations

import re
import shlex
from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from tests.receiver import receiver
from tests.signatures import timestamped_signature
from tests.webhooks_core.admin.delivery_pages import LIST, change
from tests.webhooks_core.admin.looking import SCRIPT, page
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from tests.webhooks_core.network.hostile import Hostile, answers_once
from webhooks_core import endpoints
from webhooks_core.admin import display
from webhooks_core.models import Attempt, DispatcherLease, EndpointSecret, Event
from webhooks_core.publishing import publish
from webhooks_core.secrets import HIDDEN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def block(text, name) -> str:
    """Return the text of an element as a browser shows it."""
    match = re.search(rf'<pre id="{name}"[^>]*>(.*?)</pre>', text, re.DOTALL)
    assert match
    return unescape(match[1])


def publish_data(data: dict[str, object]) -> None:
    publish(profile="plain", owner="alice", event_type="thing.made", data=data)


def test_input_from_outside_is_shown_escaped(admin_client):
    with receiver(500) as server:
        server.answer = SCRIPT.encode()
        EndpointFactory.create(url=f"{server.url}?{SCRIPT}")
        publish_data({"x": SCRIPT})
        dispatch()
    assert bytes(Attempt.objects.get().response_body) == SCRIPT.encode()
    text = page(admin_client, change(only_delivery()))
    assert SCRIPT not in text
    # Response, url, exact body, readable body, curl (url and body).
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 6
    assert SCRIPT not in page(admin_client, LIST)


def test_a_request_that_was_sent_again_on_a_new_connection_is_one_attempt_that_says_so(
    admin_client,
):
    with Hostile(answers_once).running() as server:
        EndpointFactory.create(url=server.url, max_in_flight=1)
        publish_events(2)
        dispatch()
        assert server.requests == 3
    first, second = Attempt.objects.order_by("started_at")
    assert (first.is_repeated, second.is_repeated) == (False, True)
    assert (second.number, second.outcome) == (1, "ok")
    note = "sent again on a new connection"
    assert note not in page(admin_client, change(first.delivery))
    assert note in page(admin_client, change(second.delivery))


def test_an_attempt_shows_what_was_sent_and_received_without_credentials(admin_client):
    with receiver(500) as server:
        server.headers["X-Served-By"] = "<b>cache-7</b>"
        target = EndpointFactory.create(url=server.url)
        endpoints.set_custom_headers(target, {"X-Api-Key": "k-123456"})
        publish_event()
        dispatch(linger=timedelta(0))
    attempt = Attempt.objects.get()
    [sent] = server.requests
    assert sent.headers["X-Api-Key"] == "k-123456"
    [step] = display.timeline([attempt])
    assert dict(step.request_headers) == sent.headers | {"X-Api-Key": HIDDEN}
    assert ("X-Served-By", "<b>cache-7</b>") in step.response_headers
    assert attempt.details["address"] == "127.0.0.1"
    assert attempt.details["lease"] == DispatcherLease.objects.get().pk
    times = [attempt.details[name] for name in ("connected", "first_byte")]
    assert sorted(times) == times
    text = page(admin_client, change(attempt.delivery))
    assert "&lt;b&gt;cache-7&lt;/b&gt;" in text
    assert "Request headers" in text
    assert "k-123456" not in text


def test_an_attempt_without_a_connection_sent_nothing(admin_client):
    EndpointFactory.create(url="http://127.0.0.1:9/hook")
    publish_event()
    dispatch(linger=timedelta(0))
    details = Attempt.objects.get().details
    assert details == {"lease": details["lease"], "url": "http://127.0.0.1:9/hook"}
    assert "Request headers" not in page(admin_client, change(only_delivery()))


def test_the_body_is_shown_exactly_and_formatted(admin_client):
    EndpointFactory.create()
    publish_data({"b": 1, "a": "é"})
    raw = bytes(Event.objects.get().body)
    text = page(admin_client, change(only_delivery()))
    assert block(text, "body") == raw.decode()
    assert '"b": 1,\n    "a": "é"' in unescape(text)
    answer = admin_client.get(f"{LIST}{only_delivery().pk}/body/")
    assert answer.content == raw
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment;")


def test_a_long_body_is_cut_on_the_page_and_complete_in_the_download(admin_client):
    EndpointFactory.create()
    publish_data({"x": "z" * 100_000})
    text = page(admin_client, change(only_delivery()))
    assert text.count("z") < 50_000
    assert f"--data-binary @{Event.objects.get().public_id}.json" in text
    whole = admin_client.get(f"{LIST}{only_delivery().pk}/body/").content
    assert whole == bytes(Event.objects.get().body)


@pytest.mark.parametrize("raw", [b"\xff\xfe nonsense", b"[" * 5000, b""])
def test_a_body_that_is_not_json_is_shown_unchanged(admin_client, raw):
    EndpointFactory.create()
    publish_event()
    Event.objects.update(body=raw)
    text = page(admin_client, change(only_delivery()))
    assert block(text, "body") == raw.decode("utf-8", "backslashreplace")
    assert "For reading" not in text


def test_curl_sends_what_the_engine_would_send(admin_client):
    target = EndpointFactory.create()
    publish_data({"x": "it's $HOME"})
    command = block(page(admin_client, change(only_delivery())), "curl")
    words = shlex.split(command.replace("\\\n", " "))
    raw = bytes(Event.objects.get().body)
    assert words[-2:] == ["--data-raw", raw.decode()]
    sent = dict(word.split(": ", 1) for word in words if re.match(r"[\w-]+: ", word))
    (secret,) = target.secrets(now=timezone.now())
    signature = timestamped_signature([secret], int(sent["X-Timestamp"]), raw)
    assert sent["X-Plain-Signature"] == signature
    assert sent["X-Delivery"] == only_delivery().public_id
    assert words[words.index("--path-as-is") + 1] == target.url


def test_neither_secret_nor_ciphertext_nor_own_header_is_ever_shown(admin_client):
    target = EndpointFactory.create()
    endpoints.set_custom_headers(target, {"X-Api-Key": "k-123456"})
    publish_event()
    secret = EndpointSecret.objects.get().value
    text = page(admin_client, change(only_delivery()))
    assert secret.decrypt() not in text
    assert secret.ciphertext not in text
    assert "k-123456" not in text
    assert f"X-Api-Key: {HIDDEN}" in unescape(text)


def test_an_unreadable_secret_is_shown_without_a_server_error(admin_client, settings):
    EndpointFactory.create()
    publish_event()
    settings.WEBHOOK_SECRET_KEYS = ["A" * 43 + "="]
    assert "This cannot be signed" in page(admin_client, change(only_delivery()))


def test_the_timeline_shows_each_attempt_and_what_comes_next(admin_client):
    with receiver(500) as server:
        EndpointFactory.create(url=server.url)
        publish_event()
        text = page(admin_client, change(only_delivery()))
        assert "No attempt has ended yet" in text
        dispatch()
    text = page(admin_client, change(only_delivery()))
    assert "http 500" in text
    assert "next attempt at" in text
    assert re.search(r"1\s+of 3", text)
