"""Of the demo user: a recording, and an endpoint that works, one that fails, one that was disabled."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import accumulate

import orjson
from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from recording.accounts.owners import owner_id
from recording.library import importing
from recording.models import Recording
from recording.webhooks import PROFILE, SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE
from webhooks_core import endpoints, ids, profiles, times
from webhooks_core.models import Attempt, Delivery, Endpoint, Event
from webhooks_core.network.errors import Outcome
from webhooks_core.owners import details

FAULT = '{"error": "no such table: orders"}'
FAILED = [500] * 6
# The answers to the attempts of each event, of which each is two hours older than the next.
STORIES = {
    "works": [[204], [204], [503, 204], [204]],
    "fails": [[204], [204], FAILED, FAILED],
    "was disabled": [FAILED, FAILED, FAILED, [500, 500]],
}


def load(*, user: AbstractUser) -> None:
    """Create what is not there."""
    if not Recording.objects.filter(account=user.pk).exists():
        raw = orjson.dumps(SUMMARY_COMPLETED_SAMPLE)
        importing.import_recording(account=user, raw=raw)
    if not Endpoint.objects.of(PROFILE, owner_id(user)).exists():
        _load_endpoints(owner_id(user))


def _load_endpoints(owner: str) -> None:
    """Create the endpoints with their deliveries; no event is sent to them: nobody listens there."""
    now = timezone.now()
    events = [_event(owner, now - timedelta(hours=hours)) for hours in (8, 6, 4, 2)]
    made = [_endpoint(owner, name) for name in STORIES]
    # By time, as the list of deliveries shows them.
    for event, *answers in zip(events, *STORIES.values(), strict=True):
        for endpoint, statuses in zip(made, answers, strict=True):
            _deliver(endpoint, event, statuses)
    for endpoint in made:
        _store_state(endpoint)


def _endpoint(owner: str, name: str) -> Endpoint:
    return endpoints.create(
        profile=PROFILE,
        owner=owner,
        url=f"http://127.0.0.1:9/{name.replace(' ', '-')}",
        event_types=[],
        description=f"Sample: it {name}.",
    ).endpoint


def _event(owner: str, at: datetime) -> Event:
    about = {"public_id": ids.public_id("evt_", at=at), "type": SUMMARY_COMPLETED}
    envelope = {"id": about["public_id"], "type": about["type"]}
    data = {"created_at": times.iso(at), "data": SUMMARY_COMPLETED_SAMPLE}
    body = orjson.dumps(envelope | data)
    return Event.objects.create(
        profile=PROFILE, owner=owner, size=len(body), created_at=at, body=body, **about
    )


def _deliver(endpoint: Endpoint, event: Event, statuses: list[int]) -> None:
    delays = accumulate(profiles.get(PROFILE).retry.delays, initial=0.0)
    starts = [event.created_at + timedelta(seconds=delay) for delay in delays]
    last = starts[len(statuses) - 1]
    delivery = Delivery(
        public_id=ids.public_id("dlv_", at=event.created_at),
        event=event,
        endpoint=endpoint,
        attempts=len(statuses),
        created_at=event.created_at,
        next_attempt_at=None,
        last_error="" if statuses == [204] else f"HTTP {statuses[0]}",
    )
    if statuses[-1] == 204:
        delivery.status, delivery.delivered_at = Delivery.Status.DELIVERED, last
    elif len(statuses) == len(starts):
        delivery.status = Delivery.Status.FAILED
    else:  # it waits until the endpoint is enabled
        delivery.next_attempt_at = last
    delivery.save()
    for number, (at, status) in enumerate(zip(starts, statuses, strict=False), 1):
        _attempt(delivery, number, at, status)


def _attempt(delivery: Delivery, number: int, at: datetime, status: int) -> None:
    sent = {"Host": "127.0.0.1:9", **(details.headers(delivery, now=at) or {})}
    Attempt.objects.create(
        delivery=delivery,
        number=number,
        started_at=at,
        duration_ms=30 + 7 * number,
        outcome=Outcome.OK if status == 204 else Outcome.HTTP,
        status_code=status,
        error="" if status == 204 else f"HTTP {status}",
        response_body=FAULT.encode() if status == 500 else b"",
        details={
            "url": delivery.endpoint.url,
            "request": "\r\n".join(map(": ".join, sent.items())),
            "response": "Content-Type: application/json",
        },
    )


def _store_state(endpoint: Endpoint) -> None:
    """Let the endpoint say what its attempts mean."""
    rows = Attempt.objects.filter(delivery__endpoint=endpoint)
    attempts = list(rows.order_by("started_at"))
    last = attempts[-1].started_at
    successes = [each.started_at for each in attempts if each.status_code == 204]
    since = max(successes, default=last - timedelta(days=1))
    failures = [each for each in attempts if each.started_at > since]
    endpoint.created_at, endpoint.last_attempt_at = attempts[0].started_at, last
    endpoint.last_success_at = max(successes, default=None)
    if failures:
        count = len(failures)
        endpoint.consecutive_failures = endpoint.failed_attempts = count
        endpoint.failing_since, endpoint.alike_failures = failures[0].started_at, count
        endpoint.last_outcome, endpoint.last_error = Outcome.HTTP, "HTTP 500"
        endpoint.last_response, endpoint.alerted_at = FAULT, last  # nobody is alerted
    if len(failures) == profiles.get(PROFILE).disable_after:
        endpoint.status, endpoint.disabled_at = Endpoint.Status.DISABLED, last
    endpoint.save()
