"""The deliveries' admin as the tests of its list and of its page see it."""

from __future__ import annotations

import re

from django.utils import timezone

from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Attempt, Delivery

LIST = "/admin/webhooks_core/delivery/"


def change(delivery) -> str:
    return f"{LIST}{delivery.pk}/change/"


def shown_ids(text) -> list[str]:
    return re.findall(r"<code>(dlv_\w+)</code><br>", text)


def make(number) -> None:
    """Create deliveries with two attempts each, all for one endpoint of their own."""
    target, origin = EndpointFactory.create(), publish_event()
    Delivery.objects.all().delete()
    Delivery.objects.bulk_create(
        Delivery(
            public_id=f"dlv_{n}",
            event=origin,
            endpoint=target,
            replay_number=n,
            attempts=2,
        )
        for n in range(number)
    )
    Attempt.objects.bulk_create(
        Attempt(
            delivery=delivery,
            number=n,
            started_at=timezone.now(),
            duration_ms=10 * n,
            outcome="http",
            status_code=500 + n,
        )
        for delivery in Delivery.objects.all()
        for n in (1, 2)
    )
