"""Jobs that put deliveries into the queue of another library."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.deliveries.filling import body, padding


def queue_django_q(keys: Sequence[int]) -> None:
    from django_q.brokers import get_broker
    from django_q.tasks import async_task

    broker = get_broker()
    for key in keys:
        async_task("benchmarks.deliveries.peers.naive.deliver", key, broker=broker)


def queue_celery(keys: Sequence[int]) -> None:
    from benchmarks.deliveries.peers.celery_app import deliver

    for key in keys:
        deliver.delay(key)


def queue_dramatiq(keys: Sequence[int]) -> None:
    from benchmarks.deliveries.peers.dramatiq_app import deliver

    for key in keys:
        deliver.send(key)


def queue_django_webhook(url: str, count: int) -> None:
    """Queue the package's own task, which signs, posts and keeps a row of each event."""
    from django_webhook.models import Webhook, WebhookSecret

    from benchmarks.deliveries.peers.celery_app import app

    hook, is_new = Webhook.objects.get_or_create(url=url)
    if is_new:
        WebhookSecret.objects.create(webhook=hook, token="bench" * 8)
    pad = padding(1024)
    for _ in range(count):
        given = {"payload": body(1024, pad)[1].decode(), "topic": "bench"}
        app.send_task("django_webhook.tasks.fire_webhook", (hook.pk,), given)
