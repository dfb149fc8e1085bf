"""The task of all task queues: read a delivery, sign it, post it, write down that it arrived."""

from __future__ import annotations

import time

import requests
from django.utils import timezone

from benchmarks.deliveries.sending import COMMON
from webhooks_core import profiles
from webhooks_core.models import Delivery
from webhooks_core.profiles import SigningContext

TIMEOUT_S = 10.0
session = requests.Session()
session.trust_env = False


def deliver(pk: int) -> None:
    """Send one delivery; kept connections, nothing of the engine."""
    delivery = Delivery.objects.select_related("event", "endpoint").get(pk=pk)
    event, body = delivery.event, bytes(delivery.event.body)
    sending = SigningContext(
        event_id=event.public_id,
        event_type=event.type,
        delivery_id=delivery.public_id,
        timestamp=int(time.time()),
        body=body,
        secrets=delivery.endpoint.secrets(now=timezone.now()),
    )
    headers = profiles.get(event.profile).delivery_headers(sending)
    post(delivery.endpoint.url, {**COMMON, **headers}, body)
    Delivery.objects.filter(pk=pk).update(
        status=Delivery.Status.DELIVERED,
        delivered_at=timezone.now(),
        next_attempt_at=None,
    )


def post(url: str, headers: dict[str, str], body: bytes | str) -> None:
    answer = session.post(
        url, data=body, headers=headers, timeout=TIMEOUT_S, allow_redirects=False
    )
    answer.raise_for_status()
