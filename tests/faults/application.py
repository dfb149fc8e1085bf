"""A process of the application beside the cluster: it publishes, and reads what is stored.

`python -m tests.faults.application FOLDER` reads one JSON array per line, `[command, argument…]`, and answers each
with one line: `{"ok": …}`, or `{"error": …}` when the database failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

PROFILE, EVENT_TYPE = "recording", "summary.completed"


def subscribe(owner: str, urls: Sequence[str], fields: dict[str, Any]) -> None:
    from webhooks_core import endpoints

    for url in urls:
        endpoints.create(
            profile=PROFILE, owner=owner, url=url, event_types=[EVENT_TYPE], **fields
        )


def publish(owner: str, count: int) -> list[str]:
    """Publish events in one transaction; return their ids once it has committed."""
    from django.db import transaction

    from webhooks_core.publishing import publish as one

    with transaction.atomic():
        return [
            one(
                profile=PROFILE,
                owner=owner,
                event_type=EVENT_TYPE,
                data={"audio_id": "a"},
            ).public_id
            for _ in range(count)
        ]


def look(owner: str) -> dict[str, Any]:
    """Return all that is stored of one owner's events, and the live dispatchers."""
    from django.utils import timezone

    from webhooks_core.models import (
        Attempt,
        Delivery,
        DispatcherLease,
        Endpoint,
        EndpointQueue,
        Event,
    )

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
                "url", "status", "active", "paused_at", "consecutive_failures"
            )
        ),
        "outcomes": list(attempts.values_list("outcome", flat=True)),
        "leased": EndpointQueue.objects.filter(endpoint__owner=owner)
        .exclude(leased_by=None)
        .count(),
        "dispatchers": list(
            DispatcherLease.objects.filter(ended_at=None).values_list("pid", flat=True)
        ),
    }


def change(owner: str) -> None:
    """Change every endpoint of an owner, as its API does."""
    from webhooks_core import endpoints
    from webhooks_core.models import Endpoint

    for endpoint in Endpoint.objects.of(PROFILE, owner):
        endpoints.update(endpoint, description="changed")


def declare(owner: str, url: str, count: int) -> None:
    """Create endpoints as a configuration declares them: without a quota."""
    from webhooks_core import endpoints, secrets

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
    from webhooks_core import endpoints
    from webhooks_core.models import Endpoint

    for endpoint in Endpoint.objects.of(PROFILE, owner):
        endpoints.delete(endpoint)


def expire_leases() -> None:
    """Let every dispatcher look dead, as one is 15 s after its machine froze."""
    from webhooks_core.database.clock import clock
    from webhooks_core.models import DispatcherLease

    open_leases = DispatcherLease.objects.filter(ended_at=None)
    open_leases.update(expires_at=clock.in_sql())


def sweep_soon() -> None:
    """Move the scheduled sweep up: its minute is a pace, nobody's guarantee."""
    from django.utils import timezone
    from django_q.models import Schedule

    Schedule.objects.filter(name="webhooks: sweep").update(next_run=timezone.now())


COMMANDS: dict[str, Callable[..., Any]] = {
    command.__name__: command
    for command in (
        *(subscribe, declare, unsubscribe, publish, look, change),
        *(expire_leases, sweep_soon),
    )
}


def execute(line: str) -> dict[str, Any]:
    from django.db import InterfaceError, OperationalError, close_old_connections

    name, *arguments = orjson.loads(line)
    close_old_connections()
    try:
        return {"ok": COMMANDS[name](*arguments)}
    except (OperationalError, InterfaceError) as error:
        return {"error": str(error)}


def main(folder: Path) -> None:
    import django

    from tests.faults.rigged import set_clock

    django.setup()
    set_clock(folder)
    for line in sys.stdin:
        sys.stdout.write(orjson.dumps(execute(line)).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    main(Path(sys.argv[1]))
