"""The deliveries' admin as the tests of its list and of its page see it."""

from __future__ import annotations

import re

from tests.webhooks_core.factories import (
    AttemptFactory,
    DeliveryFactory,
    EndpointFactory,
    EventFactory,
)
from webhooks_core.models import Attempt, Delivery

LIST = "/admin/webhooks_core/delivery/"


def change(delivery) -> str:
    return f"{LIST}{delivery.pk}/change/"


def shown_ids(text) -> list[str]:
    return re.findall(r"<code>(dlv_\w+)</code><br>", text)


def make(number) -> None:
    """Create deliveries with two attempts each, all for one endpoint of their own."""
    Delivery.objects.all().delete()
    DeliveryFactory.reset_sequence(0)  # tests name the ids
    of = {"event": EventFactory.create(), "endpoint": EndpointFactory.create()}
    deliveries = DeliveryFactory.build_batch(number, attempts=2, **of)
    Delivery.objects.bulk_create(deliveries)
    Attempt.objects.bulk_create(
        AttemptFactory.build(
            delivery=delivery,
            number=n,
            duration_ms=10 * n,
            outcome="http",
            status_code=500 + n,
        )
        for delivery in deliveries
        for n in (1, 2)
    )


def operate(client, delivery, name) -> str:
    answer = client.post(f"{LIST}{delivery.pk}/{name}/", follow=True)
    assert answer.status_code == 200
    return str(answer.content.decode())


def resend_chosen(client, *deliveries: Delivery, **more: int) -> str:
    """Choose rows of the list and resend them; return the page with the messages."""
    chosen = [delivery.pk for delivery in deliveries]
    form = {"action": "resend_selected", "_selected_action": chosen, **more}
    return str(client.post(LIST, form, follow=True).content.decode())
