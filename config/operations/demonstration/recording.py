"""A round trip of recording: a summary becomes ready, and its signed event arrives, verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
from django.contrib.auth.models import AbstractUser

from config.operations.demonstration.arrivals import Arrived, next_verified, receiver
from config.operations.demonstration.steps import Client, StepError, Steps
from recording import recordings, tokens
from recording.webhooks import SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE

PENDING, DELIVERED = 0, 1
POLL_S = 0.2
# "About a minute", and up to a tenth more.
RETRY_PATIENCE_S = 100


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A subscription of the demonstration, and what arrives for it."""

    client: Client
    id: str
    secret: str
    arrived: Arrived


def run(
    steps: Steps,
    client: Client,
    *,
    user: AbstractUser,
    failing: bool,
    patience_s: float,
) -> None:
    """Raises StepError. Leaves no subscription and no recording behind."""
    statuses = (500, 204) if failing else (204,)
    with (
        receiver(statuses) as (url, arrived),
        _subscription(steps, client, url, arrived) as subscribed,
        _imported(steps, user) as event_id,
    ):
        with steps.step(f"{SUMMARY_COMPLETED} arrives, and its signature holds"):
            _expect(steps, subscribed, event_id, patience_s)
        if failing:
            _follow_retry(steps, subscribed, event_id, patience_s)
        with steps.step("Its delivery record says delivered"):
            record = _record(
                subscribed, lambda it: it["status"] == DELIVERED, patience_s
            )
            _show(steps, record)


def _follow_retry(
    steps: Steps, subscribed: Subscribed, event_id: str, patience_s: float
) -> None:
    with steps.step("It was answered 500: the delivery record says pending"):
        _show(steps, _record(subscribed, lambda it: it["last_error"], patience_s))
    with steps.step("It arrives again, about a minute later, with a fresh signature"):
        _expect(steps, subscribed, event_id, RETRY_PATIENCE_S)


@contextmanager
def personal_token(steps: Steps, user: AbstractUser) -> Iterator[str]:
    """Make a token for the time of the demonstration; yield its text."""
    with steps.step(f"A personal token is made for {user}"):
        created = tokens.create(user=user, days=1, name="demo command")
    try:
        yield created.text
    finally:
        created.token.delete()


@contextmanager
def _subscription(
    steps: Steps, client: Client, url: str, arrived: Arrived
) -> Iterator[Subscribed]:
    with steps.step(f"A subscription to {SUMMARY_COMPLETED} is created"):
        body = {"url": url, "events": [SUMMARY_COMPLETED]}
        made = client.call("POST", "/v1/webhooks", expect=201, json=body)
        steps.saw("url", url)
        steps.saw("id", made["endpoint_id"])
    path = f"/v1/webhooks/{made['endpoint_id']}"
    try:
        yield Subscribed(client, made["endpoint_id"], made["secret"], arrived)
    except BaseException:
        with suppress(StepError):
            client.call("DELETE", path)
        raise
    with steps.step("The subscription is deleted"):
        client.call("DELETE", path)


@contextmanager
def _imported(steps: Steps, user: AbstractUser) -> Iterator[str]:
    """Import a recording whose summary is ready; yield the id of the event that it sets off."""
    sample = {**SUMMARY_COMPLETED_SAMPLE, "audio_id": f"demo-{uuid4().hex}"}
    with steps.step("A recording with its summary is imported"):
        imported = recordings.import_recording(account=user, raw=orjson.dumps(sample))
        if imported.event is None:
            raise StepError("the import published no event")
        steps.saw("title", sample.get("title"))
        steps.saw("event", imported.event.public_id)
    try:
        yield imported.event.public_id
    finally:
        imported.recording.delete()


def _expect(
    steps: Steps, subscribed: Subscribed, event_id: str, patience_s: float
) -> None:
    """Wait for the event and verify it."""
    received = next_verified(
        subscribed.arrived, secret=subscribed.secret, patience_s=patience_s
    )
    if received.event_id != event_id:
        raise StepError(
            f"the event that arrived is {received.event_id}, not {event_id}"
        )
    for name in ("delivery", "timestamp", "signature"):
        steps.saw(name, received.headers[f"x-recording-{name}"])


def _record(
    subscribed: Subscribed, holds: Callable[[dict[str, Any]], Any], patience_s: float
) -> dict[str, Any]:
    """Return the delivery record once something holds of it."""
    path, end = (
        f"/v1/webhooks/{subscribed.id}/deliveries",
        time.monotonic() + patience_s,
    )
    while True:
        items = subscribed.client.call("GET", path)["items"]
        if items and holds(items[0]):
            return dict(items[0])
        if time.monotonic() > end:
            raise StepError(
                f"after {patience_s:.0f} s the delivery record still says {items}"
            )
        time.sleep(POLL_S)


def _show(steps: Steps, record: dict[str, Any]) -> None:
    names = {PENDING: "pending", DELIVERED: "delivered"}
    steps.saw("status", f"{record['status']} ({names.get(record['status'], 'failed')})")
    steps.saw("attempts", record["attempts"])
    if record["last_error"]:
        steps.saw("last error", record["last_error"])
    if record["delivered_at"]:
        steps.saw("at", record["delivered_at"])
