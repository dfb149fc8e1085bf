"""Events about a tenant's subscriptions, for those subscriptions that name them."""

from __future__ import annotations

from django_q.tasks import async_task

from gateway import events
from gateway.events import Origin
from webhooks_core.models import Endpoint
from webhooks_core.owners import state
from webhooks_core.profiles import Notice
from webhooks_core.times import iso


def on_notice(notice: Notice) -> None:
    """Have a worker tell the tenant."""
    async_task("gateway.alerts.tell", notice.kind.value, notice.endpoint_id)


def tell(kind: str, endpoint_id: str) -> None:
    """Publish the event of a kind, unless the subscription was deleted meanwhile."""
    endpoint = Endpoint.objects.filter(public_id=endpoint_id, deleted_at=None).first()
    if endpoint is None:
        return
    shown = state.describe(endpoint, for_owner=True)
    events.publish(
        origin=Origin.system(endpoint.owner),
        event_type=f"endpoint.{kind}",
        data={
            "subscription_id": endpoint.public_id,
            "url": endpoint.url,
            "since": iso(shown.since) if shown.since else None,
            "attempts": endpoint.failed_attempts,
            "error": endpoint.last_error if endpoint.failed_attempts else None,
            "message": shown.sentence,
        },
    )
