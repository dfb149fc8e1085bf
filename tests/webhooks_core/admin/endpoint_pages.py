"""The endpoints' admin as the tests of its pages and of its operations see it."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

from django.utils import timezone

from tests.webhooks_core.factories import AttemptFactory, DeliveryFactory

LIST = "/admin/webhooks_core/endpoint/"
OPERATIONS = [
    *("send-test", "enable", "pause", "resume"),
    *("set-limits", "set-trusted", "rotate-secret", "replay-failed"),
]


def change(target) -> str:
    return f"{LIST}{target.pk}/change/"


def shown(text) -> list[str]:
    return re.findall(r"<code>(ep_[0-9a-v]{26})</code>", text)


def operate(client, target, name, **fields) -> str:
    answer = client.post(f"{LIST}{target.pk}/{name}/", fields, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def attempts(target, outcomes, hours_ago=0.5, ms=10) -> None:
    """Create one delivery with these attempts."""
    delivery = DeliveryFactory.create(endpoint=target)
    at = timezone.now() - timedelta(hours=hours_ago)
    for outcome in outcomes.split():
        AttemptFactory.create(
            delivery=delivery, started_at=at, duration_ms=ms, outcome=outcome
        )
