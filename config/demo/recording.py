"""A round trip of recording: a summary becomes ready, and its signed event arrives, verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
from django.contrib.auth.models import AbstractUser

from config.demo.arrivals import (
    Arrivals,
    next_verified,
    receiver,
    subscription,
)
from config.demo.steps import Client, StepError, Steps
from recording.accounts import personal_tokens
from recording.library import importing
from recording.webhooks import SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE

PATH = "/v1/webhooks"
PENDING, DELIVERED = 0, 1
POLL_S = 0.2
# The first retry comes about a minute later.
RETRY_TIMEOUT_S = 100


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint of the demonstration, and the events that arrive there."""

    steps: Steps
    client: Client
    id: str
    secret: str
    arrivals: Arrivals

    def expect_event(self, event_id: str, *, timeout_s: float) -> None:
        """Wait for the event and verify it."""
        received = next_verified(self.arrivals, secret=self.secret, timeout_s=timeout_s)
        if received.event_id != event_id:
            raise StepError(
                f"the event that arrived is {received.event_id}, not {event_id}"
            )
        for name in ("delivery", "timestamp", "signature"):
            self.steps.show(name, received.headers[f"x-recording-{name}"])

    def expect_record(
        self, is_expected: Callable[[dict[str, Any]], bool], *, timeout_s: float
    ) -> None:
        """Wait until the delivery record is as expected, and show it."""
        deadline = time.monotonic() + timeout_s
        items = self._records()
        while not items or not is_expected(items[0]):
            if time.monotonic() > deadline:
                raise StepError(
                    f"after {timeout_s:.0f} s the delivery record still says {items}"
                )
            time.sleep(POLL_S)
            items = self._records()
        status = items[0]["status"]
        names = {PENDING: "pending", DELIVERED: "delivered"}
        self.steps.show("status", f"{status} ({names.get(status, 'failed')})")
        self.steps.show("attempts", items[0]["attempts"])
        for name, field in (("last error", "last_error"), ("at", "delivered_at")):
            if items[0][field]:
                self.steps.show(name, items[0][field])

    def _records(self) -> list[dict[str, Any]]:
        page = self.client.call("GET", f"{PATH}/{self.id}/deliveries")
        return list(page["items"])


def run(
    steps: Steps,
    client: Client,
    *,
    user: AbstractUser,
    failing: bool,
    timeout_s: float,
) -> None:
    """Run the steps, and delete the subscription and recording. Raises StepError."""
    statuses = (500, 204) if failing else (204,)
    with (
        receiver(statuses) as (url, arrivals),
        _endpoint(steps, client, url, arrivals) as endpoint,
        _imported(steps, user) as event_id,
    ):
        with steps.step(f"{SUMMARY_COMPLETED} arrives, and its signature holds"):
            endpoint.expect_event(event_id, timeout_s=timeout_s)
        if failing:
            with steps.step("It was answered 500: the delivery record says pending"):
                endpoint.expect_record(
                    lambda record: bool(record["last_error"]), timeout_s=timeout_s
                )
            with steps.step(
                "It arrives again, about a minute later, with a fresh signature"
            ):
                endpoint.expect_event(event_id, timeout_s=RETRY_TIMEOUT_S)
        with steps.step("Its delivery record says delivered"):
            endpoint.expect_record(
                lambda record: bool(record["status"] == DELIVERED), timeout_s=timeout_s
            )


@contextmanager
def personal_token(steps: Steps, user: AbstractUser) -> Iterator[str]:
    """Create a token for the demonstration; yield its text."""
    with steps.step(f"A personal token is made for {user}"):
        created = personal_tokens.create(user=user, days=1, name="demo command")
    try:
        yield created.text
    finally:
        created.token.delete()


@contextmanager
def _endpoint(
    steps: Steps, client: Client, url: str, arrivals: Arrivals
) -> Iterator[Endpoint]:
    title = f"A subscription to {SUMMARY_COMPLETED} is created"
    body = {"url": url, "events": [SUMMARY_COMPLETED]}
    steps.show("url", url)
    with subscription(
        steps, client, PATH, title=title, id_field="endpoint_id", **body
    ) as created:
        yield Endpoint(
            steps, client, created["endpoint_id"], created["secret"], arrivals
        )


@contextmanager
def _imported(steps: Steps, user: AbstractUser) -> Iterator[str]:
    """Import a recording whose summary is ready; yield the id of its event."""
    sample = {**SUMMARY_COMPLETED_SAMPLE, "audio_id": f"demo-{uuid4().hex}"}
    with steps.step("A recording with its summary is imported"):
        imported = importing.import_recording(account=user, raw=orjson.dumps(sample))
        if imported.event is None:
            raise StepError("the import published no event")
        steps.show("title", sample.get("title"))
        steps.show("event", imported.event.public_id)
    try:
        yield imported.event.public_id
    finally:
        imported.recording.delete()
