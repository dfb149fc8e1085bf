"""A process of the application beside the cluster: it publishes, and reads what is stored.

It reads one JSON array per line of its input, `[command, argument…]`, and answers each with one line:
`{"ok": …}`, or `{"error": …}` when the database failed.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
from django.db import (
    InterfaceError,
    OperationalError,
    close_old_connections,
    transaction,
)
from django.utils import timezone
from django_q.models import Schedule

from tests.faults.rigged import set_clock
from webhooks_core import endpoints, publishing, secrets
from webhooks_core.database.clock import clock
from webhooks_core.models import (
    Attempt,
    Delivery,
    DispatcherLease,
    Endpoint,
    EndpointQueue,
    Event,
)

PROFILE, EVENT_TYPE = "recording", "summary.completed"


def subscribe(owner: str, urls: Sequence[str], fields: dict[str, Any]) -> None:
    for url in urls:
        endpoints.create(
            profile=PROFILE, owner=owner, url=url, event_types=[EVENT_TYPE], **fields
        )


def publish(owner: str, count: int) -> list[str]:
    """Publish events in one transaction; return their ids once it has committed."""
    with transaction.atomic():
        events = [
            publishing.publish(
                profile=PROFILE,
                owner=owner,
                event_type=EVENT_TYPE,
                data={"audio_id": "a"},
            )
            for _ in range(count)
        ]
    return [event.public_id for event in events]


def look(owner: str) -> dict[str, Any]:
    """Return all that is stored of one owner's events."""
    own, now = {"profile": PROFILE, "owner": owner}, timezone.now()
    deliveries = Delivery.objects.filter(
        endpoint__owner=owner, endpoint__profile=PROFILE
    )
    attempts = Attempt.objects.filter(delivery__in=deliveries)
    return {
        "events": list(Event.objects.filter(**own).values_list("public_id", flat=True)),
        "deliveries": [
            {
                **row,
                "is_due": row["next_attempt_at"] is not None
                and row["next_attempt_at"] <= now,
            }
            for row in deliveries.values(
                "event__public_id",
                "endpoint__url",
                "status",
                "attempts",
                "interruptions",
                "claimed_by",
                "last_error",
                "next_attempt_at",
            )
        ],
        "endpoints": list(
            Endpoint.objects.filter(**own).values(
                "url", "status", "active", "consecutive_failures"
            )
        ),
        "outcomes": list(attempts.values_list("outcome", flat=True)),
        "leased": EndpointQueue.objects.filter(endpoint__owner=owner)
        .exclude(leased_by=None)
        .count(),
    }


def change(owner: str) -> None:
    """Change every endpoint of an owner, as its API does."""
    for endpoint in Endpoint.objects.of(PROFILE, owner):
        endpoints.update(endpoint, description="changed")


def declare(owner: str, url: str, count: int) -> None:
    """Create endpoints as a configuration declares them: without a quota."""
    for number in range(count):
        endpoints.create_static(
            profile=PROFILE,
            owner=owner,
            static_key=f"{number}",
            url=f"{url}/{number}",
            event_types=[EVENT_TYPE],
            secret=secrets.make(),
        )


def unsubscribe(owner: str) -> None:
    for endpoint in Endpoint.objects.of(PROFILE, owner):
        endpoints.delete(endpoint)


def expire_leases() -> None:
    """Let every dispatcher look dead, as one is 15 s after its machine froze."""
    open_leases = DispatcherLease.objects.all()
    open_leases.update(expires_at=clock.in_sql())


def sweep_soon() -> None:
    """Move the scheduled sweep up: its minute is a pace, nobody's guarantee."""
    Schedule.objects.filter(name="webhooks: sweep").update(next_run=timezone.now())


COMMANDS: dict[str, Callable[..., Any]] = {
    command.__name__: command
    for command in (
        *(subscribe, declare, unsubscribe, publish, look, change),
        *(expire_leases, sweep_soon),
    )
}


def execute(line: str) -> dict[str, Any]:
    name, *arguments = orjson.loads(line)
    close_old_connections()
    try:
        return {"ok": COMMANDS[name](*arguments)}
    except (OperationalError, InterfaceError) as error:
        return {"error": str(error)}


def main() -> None:
    set_clock(Path(sys.argv[1]))
    for line in sys.stdin:
        sys.stdout.write(orjson.dumps(execute(line)).decode() + "\n")
        sys.stdout.flush()
