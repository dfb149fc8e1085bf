"""The words for deliveries and attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import wording

NOW = timezone.now()
Status = Delivery.Status


def attempt(status: int | None = None, **fields: Any) -> Attempt:
    given = {"outcome": Outcome.HTTP, "duration_ms": 40, "started_at": NOW}
    return Attempt(status_code=status, **given | fields)


def later(attempt: Attempt, hours: int) -> Attempt:
    attempt.started_at = NOW + timedelta(hours=hours)
    return attempt


@pytest.mark.parametrize(
    ("fields", "short", "clause"),
    [
        ({"status": 500}, "HTTP 500", "your server answered 500"),
        ({"outcome": Outcome.TIMEOUT}, "Timeout", "your server did not answer within 15 s"),
        ({"outcome": Outcome.INTERRUPTED}, "Interrupted", "our process ended during the attempt"),
        ({"outcome": Outcome.UNSIGNED}, "Not signed", "the event could not be signed"),
        ({"outcome": Outcome.TLS, "error": "the certificate is expired"}, "TLS failed",
         "the certificate is expired"),
        ({"outcome": Outcome.CONNECT, "error": ""}, "No connection", "the attempt failed"),
    ],
)  # fmt: skip
def test_what_an_attempt_met(fields, short, clause):
    made = attempt(**fields)
    assert wording.result(made) == short
    assert wording.sentence(made, timeout_s=15) == clause


@pytest.mark.parametrize(
    ("status", "error", "attempts", "headline", "next_step"),
    [
        (Status.DELIVERED, "", [], "Delivered.", ""),
        (Status.DELIVERED, "", [attempt(500), attempt(204)],
         "Delivered at attempt 2: your server answered 204 in 40 ms.", ""),
        (Status.PENDING, "", [], "Not sent yet.", "WAITS"),
        (Status.PENDING, "", [attempt(503)],
         "Not delivered yet: your server answered 503.", "WAITS"),
        (Status.FAILED, "", [], "Not delivered: no attempt was made.",
         "It is not sent again automatically."),
        (Status.FAILED, "HTTP 500", [attempt(500), later(attempt(500), 2)],
         "Not delivered: your server answered 500, twice in 2 h.",
         "It is not sent again automatically."),
        (Status.FAILED, "HTTP 500", [attempt(503), later(attempt(500), 2)],
         "Not delivered: 2 attempts in 2 h failed, and the last time your server answered 500.",
         "It is not sent again automatically."),
        (Status.FAILED, "endpoint deleted", [attempt(500)],
         "Not delivered: endpoint deleted; before, your server answered 500.",
         "It is not sent again automatically."),
    ],
)  # fmt: skip
def test_the_state_of_a_delivery(status, error, attempts, headline, next_step):
    delivery = Delivery(status=status, last_error=error)
    verdict = wording.verdict(
        delivery, attempts, later=(), timeout_s=15, waiting="WAITS"
    )
    assert (verdict.headline, verdict.next_step) == (headline, next_step)


def test_a_failed_delivery_that_arrived_when_resent_says_so():
    resent = Delivery(status=Status.DELIVERED)
    failed = Delivery(status=Status.FAILED, last_error="HTTP 500")
    verdict = wording.verdict(failed, [], later=[resent], timeout_s=15, waiting="")
    assert verdict.tone == "success"
    assert verdict.next_step == "It was resent, and arrived then."


@pytest.mark.parametrize(
    ("delivery", "endpoint", "text"),
    [
        ({"status": Status.FAILED}, {}, ""),
        ({"claimed_by": UUID(int=1)}, {}, "It is being sent."),
        ({}, {"active": False}, "Waits: the endpoint is paused."),
        ({"next_attempt_at": NOW + timedelta(minutes=5)}, {},
         "Waits for 5 min: then it is tried again."),
        ({"next_attempt_at": NOW}, {}, "Waits: its turn comes next."),
    ],
)  # fmt: skip
def test_why_a_delivery_is_not_sent_yet(delivery, endpoint, text):
    receiver = Endpoint(profile="recording", **{"active": True} | endpoint)
    made = Delivery(endpoint=receiver, **{"status": Status.PENDING} | delivery)
    assert wording.waits(made, NOW) == text


def test_webhooks_that_are_switched_off_are_named(monkeypatch):
    off = replace(profiles.get("recording"), enabled=False)
    monkeypatch.setitem(profiles.PROFILES, "recording", off)
    made = Delivery(endpoint=Endpoint(profile="recording"), status=Status.PENDING)
    text = "Waits: webhooks are switched off in the configuration."
    assert wording.waits(made, NOW) == text
