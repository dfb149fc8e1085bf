"""Sample webhooks of a new instance: a day of an endpoint that works, one that fails, one disabled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate

import orjson
from django.contrib.auth import get_user_model
from django.utils import timezone

from recording.webhooks import PROFILE, SUMMARY_COMPLETED, SUMMARY_COMPLETED_SAMPLE
from webhooks_core import endpoints, ids, profiles, times
from webhooks_core.models import (
    Attempt,
    Delivery,
    Endpoint,
    EndpointChange,
    Event,
    SkippedEvent,
)
from webhooks_core.network.outcomes import Outcome
from webhooks_core.owners import payloads
from webhooks_core.owners.changes import ENGINE
from webhooks_core.profiles import EventContext

# An account of its own: what the demo user does is not sent to addresses without a receiver.
OWNER = "sample"
HOURS = 24
URL = "http://127.0.0.1:9/hooks/{name}"
FAULT = b'{"error": "no such table: orders"}'
Status = Delivery.Status


@dataclass(frozen=True, slots=True)
class Story:
    """An endpoint: it fails from so many hours ago on; the engine disables it if it may."""

    name: str
    description: str
    fails_since: int | None = None


STORIES = (
    Story("shop", "Sample: it works."),
    Story("billing", "Sample: it fails.", fails_since=2),
    Story("archive", "Sample: it was disabled.", fails_since=12),
)


def load() -> None:
    """Create the sample account with its endpoints, unless there is one. Nothing is sent."""
    users = get_user_model().objects
    if users.filter(username=OWNER).exists():
        return
    owner = str(users.create_user(OWNER).pk)
    # So that what was tried last ended before now.
    now = timezone.now() - timedelta(minutes=1)
    events = [
        _event(owner, now - timedelta(hours=hour)) for hour in range(HOURS, 0, -1)
    ]
    days = [_Day(_endpoint(owner, story), story, now) for story in STORIES]
    # By event, as the engine does: the ids of deliveries ascend with time.
    for event in events:
        for day in days:
            day.receive(event)
    for day in days:
        day.store_state(events[0].created_at - timedelta(hours=1))


def _endpoint(owner: str, story: Story) -> Endpoint:
    return endpoints.create(
        profile=PROFILE,
        owner=owner,
        url=URL.format(name=story.name),
        event_types=[SUMMARY_COMPLETED],
        description=story.description,
    ).endpoint


def _event(owner: str, at: datetime) -> Event:
    profile = profiles.get(PROFILE)
    public_id = ids.public_id(profile.event_prefix, at=at)
    data = SUMMARY_COMPLETED_SAMPLE | {
        "audio_id": f"aud_{at:%H}",
        "recorded_at": f"{at:%FT%H}:00:00Z",
    }
    context = EventContext(
        id=public_id,
        type=SUMMARY_COMPLETED,
        owner=owner,
        created_at=times.iso(at),
        data=data,
        metadata={},
    )
    body = orjson.dumps(profile.envelope(context))
    return Event.objects.create(
        public_id=public_id,
        profile=PROFILE,
        owner=owner,
        type=SUMMARY_COMPLETED,
        size=len(body),
        created_at=at,
        body=body,
    )


@dataclass(slots=True)
class _Day:
    """The rows of one endpoint's day; `failures` counts those in a row."""

    endpoint: Endpoint
    story: Story
    now: datetime
    failures: int = 0
    failing_since: datetime | None = None
    last_success_at: datetime | None = None
    disabled_at: datetime | None = None
    attempts: list[Attempt] = field(default_factory=list)

    def receive(self, event: Event) -> None:
        """Deliver an event, or let it skip the endpoint."""
        if self.disabled_at and event.created_at > self.disabled_at:
            SkippedEvent.objects.create(
                event=event,
                endpoint=self.endpoint,
                reason=SkippedEvent.Reason.DISABLED,
            )
        else:
            self._deliver(event)

    def _deliver(self, event: Event) -> None:
        profile = profiles.get(PROFILE)
        delivery = Delivery(
            public_id=ids.public_id(profile.delivery_prefix, at=event.created_at),
            event=event,
            endpoint=self.endpoint,
            created_at=event.created_at,
            next_attempt_at=None,
        )
        results = list(self._results(event))
        delivery.attempts = len(results)
        at, status = results[-1]
        if status < 300:
            delivery.status, delivery.delivered_at = Status.DELIVERED, at
            self.failures, self.last_success_at = 0, at
        elif len(results) == profile.retry.max_attempts:
            delivery.status = Status.FAILED
        else:  # it waits until the endpoint is enabled
            delivery.next_attempt_at = at + timedelta(minutes=5)
        errors = [f"HTTP {status}" for _, status in results if status >= 300]
        delivery.last_error = errors[-1] if errors else ""
        delivery.save(force_insert=True)
        self.attempts += [
            _attempt(delivery, number, at, status)
            for number, (at, status) in enumerate(results, start=1)
        ]

    def _results(self, event: Event) -> Iterator[tuple[datetime, int]]:
        """Yield the time and the status of each attempt of an event."""
        profile, start = profiles.get(PROFILE), event.created_at
        age = round((self.now - start) / timedelta(hours=1))
        if self.story.fails_since is None or age > self.story.fails_since:
            if age % 7 == 0:  # now and then a receiver restarts
                yield start, 503
                start += timedelta(seconds=profile.retry.delays[0])
            yield start, 204
            return
        self.failing_since = self.failing_since or start
        for delay in accumulate(profile.retry.delays, initial=0.0):
            self.failures += 1
            at = start + timedelta(seconds=delay)
            yield at, 500
            if self.failures == profile.disable_after:
                self.disabled_at = at
                return

    def store_state(self, created_at: datetime) -> None:
        """Store the attempts, and let the endpoint and its changes say what happened."""
        Attempt.objects.bulk_create(self.attempts)
        last = max(self.attempts, key=lambda attempt: attempt.started_at)
        status = (
            Endpoint.Status.DISABLED if self.disabled_at else Endpoint.Status.ACTIVE
        )
        is_failing = self.failing_since is not None
        Endpoint.objects.filter(pk=self.endpoint.pk).update(
            status=status,
            created_at=created_at,
            updated_at=created_at,
            last_attempt_at=last.started_at,
            last_success_at=self.last_success_at,
            consecutive_failures=self.failures,
            failed_attempts=self.failures,
            alike_failures=self.failures,
            failing_since=self.failing_since,
            last_outcome=Outcome.HTTP if is_failing else "",
            last_error="HTTP 500" if is_failing else "",
            last_response=FAULT.decode() if is_failing else "",
            disabled_at=self.disabled_at,
            # Nobody is alerted of a sample.
            alerted_at=self.failing_since,
        )
        EndpointChange.objects.filter(endpoint=self.endpoint).update(at=created_at)
        self.endpoint.endpointsecret_set.update(created_at=created_at)
        if self.disabled_at:
            EndpointChange.objects.create(
                endpoint=self.endpoint,
                action=EndpointChange.Action.DISABLED,
                actor_kind=ENGINE.kind,
                at=self.disabled_at,
            )


def _attempt(delivery: Delivery, number: int, at: datetime, status: int) -> Attempt:
    """Return an attempt with the request that it would have sent."""
    body = FAULT if status == 500 else b""
    sent = payloads.headers(delivery, now=at) or {}
    lines = [f"{name}: {value}" for name, value in sent.items()]
    duration_ms = 35 + (7 * number + at.hour * 11) % 60
    return Attempt(
        delivery=delivery,
        number=number,
        started_at=at,
        duration_ms=duration_ms,
        outcome=Outcome.OK if status < 300 else Outcome.HTTP,
        status_code=status,
        error="" if status < 300 else f"HTTP {status}",
        response_body=body,
        details={
            "url": delivery.endpoint.url,
            "request": "\r\n".join(["Host: 127.0.0.1:9", *lines]),
            "response": f"Content-Type: application/json\r\nContent-Length: {len(body)}",
            "connected": 2,
            "secured": None,
            "first_byte": duration_ms - 1,
        },
    )
