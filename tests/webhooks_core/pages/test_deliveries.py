"""The page of a delivery: what happened, why, and what its owner does."""

from __future__ import annotations

import pytest

from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT, queries_of
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.pages.conftest import BASE, Person
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import replays

pytestmark = pytest.mark.django_db(transaction=True)
HIDDEN = "only operators see what it answered"


def page_of(person: Person, delivery: Delivery) -> str:
    return person.page(f"/deliveries/{delivery.public_id}")


def test_a_failure_is_told_in_words_with_what_was_sent_and_answered(ada):
    with receiver(500) as server:
        server.answer = b'{"error": "no such table"}'
        server.headers = {"X-Request-Id": "r-17"}
        delivery = ada.attempted(ada.endpoint(server.url))
    page = page_of(ada, delivery)
    assert "Not delivered yet: your server answered 500." in page
    assert "1 attempt failed, HTTP 500." in page
    assert "Your code raised an error." in page
    sent = server.requests[0]
    assert sent.headers["X-Recording-Signature"] in page
    assert "X-Request-Id" in page
    assert "r-17" in page
    assert "no such table" in page
    assert "X-Recording-Signature: sha256=" in page  # of the curl command
    assert "Retry now" in page
    assert "127.0.0.1:9" not in page


def test_a_success_is_told_and_asks_before_it_is_sent_again(ada):
    with receiver(204) as server:
        delivery = ada.attempted(ada.endpoint(server.url))
    page = page_of(ada, delivery)
    assert "Delivered: your server answered 204 in" in page
    assert "This event has arrived already." in page
    assert "What to do" not in page


def test_everything_from_strangers_is_escaped(ada):
    with receiver(418) as server:
        server.answer = SCRIPT.encode() + b"\xff\x00"
        server.headers = {"X-Evil": SCRIPT}
        delivery = ada.attempted(ada.endpoint(f"{server.url}?{SCRIPT}"), title=SCRIPT)
    for query in ("", "?body=exact"):
        page = ada.page(f"/deliveries/{delivery.public_id}{query}")
        assert SCRIPT not in page
        assert "&lt;script&gt;alert(1)" in page


def test_the_body_is_shown_formatted_exact_and_as_a_download(ada):
    delivery = ada.delivery(ada.endpoint())
    raw = bytes(delivery.event.body).decode()
    assert "&quot;audio_id&quot;: &quot;aud_1&quot;" in page_of(ada, delivery)
    exact = ada.page(f"/deliveries/{delivery.public_id}?body=exact")
    assert raw.replace('"', "&quot;") in exact
    download = ada.browser.get(f"{BASE}/deliveries/{delivery.public_id}/body")
    assert download.content.decode() == raw
    assert download["Content-Type"] == "application/octet-stream"
    assert download["Content-Disposition"].startswith("attachment")


def test_a_response_from_an_internal_network_stays_with_operators(ada, settings):
    settings.WEBHOOK_ALLOWED_TARGETS = ["127.0.0.0/8"]
    with receiver(500) as server:
        server.answer = b"internal text"
        server.headers = {"X-Internal": "secret-host"}
        endpoint = ada.endpoint(server.url)
        Endpoint.objects.filter(pk=endpoint.pk).update(trusted=True)
        delivery = ada.attempted(endpoint)
    page = page_of(ada, delivery)
    assert HIDDEN in page
    assert "internal text" not in page
    assert "secret-host" not in page
    assert "your server answered 500" in page


def test_values_of_custom_headers_are_masked(ada):
    with receiver(204) as server:
        endpoint = ada.endpoint(server.url)
        endpoints.set_custom_headers(endpoint, {"X-Api-Key": "hush-hush"})
        page = page_of(ada, ada.attempted(endpoint))
    assert server.requests[0].headers["X-Api-Key"] == "hush-hush"
    assert "X-Api-Key" in page
    assert "hush-hush" not in page


def test_neither_the_address_nor_the_worker_is_told(ada):
    with receiver(500) as server:
        delivery = ada.attempted(
            ada.endpoint(server.url.replace("127.0.0.1", "localhost"))
        )
    attempt = delivery.attempt_set.get()
    assert attempt.details["address"]
    page = page_of(ada, delivery)
    assert attempt.details["address"] not in page
    assert "lease" not in page


def test_a_failed_event_is_resent_and_the_old_delivery_says_so(ada):
    with receiver(500, 204) as server:
        delivery = ada.attempted(ada.endpoint(server.url))
        replays.cancel(delivery, by=ada.by)
        page = ada.post(f"/deliveries/{delivery.public_id}/resend")
        assert "this is its new delivery" in page
        dispatch()
    assert "It was resent, and arrived then." in page_of(ada, delivery)
    first, second = server.requests
    assert first.body == second.body


def test_a_waiting_delivery_is_retried_now_or_cancelled(ada):
    with receiver(500, 204) as server:
        delivery = ada.attempted(ada.endpoint(server.url))
        address = f"/deliveries/{delivery.public_id}"
        assert "Waits: its turn comes next." in ada.post(f"{address}/retry-now")
        dispatch()
        assert len(server.requests) == 2
    refused = "Nothing was changed: it has ended"
    assert refused in ada.post(f"{address}/retry-now")
    assert refused in ada.post(f"{address}/cancel")
    waiting = ada.delivery(delivery.endpoint)
    page = ada.post(f"/deliveries/{waiting.public_id}/cancel")
    assert "Not delivered: cancelled by the owner" in page
    waiting.refresh_from_db()
    assert waiting.status == Delivery.Status.FAILED


def test_nothing_is_resent_to_a_disabled_endpoint(ada):
    endpoint = ada.endpoint()
    delivery = ada.delivery(endpoint)
    replays.cancel(delivery, by=ada.by)
    endpoints.update(endpoint, active=False)
    page = ada.post(f"/deliveries/{delivery.public_id}/resend")
    assert "Nothing was sent: the endpoint is disabled or inactive." in page
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("attempts", [1, 3])
def test_the_number_of_queries_is_the_same_for_any_history(ada, attempts):
    with receiver(500) as server:
        first = ada.endpoint(server.url)
        delivery = ada.attempted(first)
        for _ in range(attempts - 1):
            replays.retry_now(delivery, by=ada.by)
            dispatch()
    assert delivery.attempt_set.count() == attempts
    address = f"{BASE}/deliveries/{delivery.public_id}"
    assert len(queries_of(ada.browser, address)) == 7
