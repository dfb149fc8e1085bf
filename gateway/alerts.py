"""Alerts of a tenant: an e-mail to its address, and events for the subscriptions that name them."""

from __future__ import annotations

from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django_q.tasks import async_task

from gateway import configuration, events
from gateway.events import Origin
from gateway.models import TenantAlerts
from webhooks_core.models import Endpoint
from webhooks_core.owners import endpoint_state
from webhooks_core.profiles import Notice, NoticeKind
from webhooks_core.times import iso

SUBJECTS = {
    NoticeKind.FAILING: "a webhook fails",
    NoticeKind.DISABLED: "a webhook is disabled",
    NoticeKind.RECOVERED: "a webhook works again",
}


def on_notice(notice: Notice) -> None:
    """Have a worker tell the tenant."""
    if notice.kind in SUBJECTS:
        kinds = [notice.kind.value]
        if notice.is_first:
            kinds.insert(0, NoticeKind.FAILING.value)
        async_task("gateway.alerts.tell", kinds, notice.endpoint_id)


def tell(kinds: list[str], endpoint_id: str) -> None:
    """Publish an event for each kind, and send one e-mail about the last one."""
    endpoint = Endpoint.objects.filter(public_id=endpoint_id, deleted_at=None).first()
    if endpoint is None:
        return
    state = endpoint_state.describe(endpoint, with_response=not endpoint.trusted)
    for kind in kinds:
        _publish(kind, endpoint, state)
    address = alert_email(endpoint.owner)
    if address and settings.SENDS_EMAIL:
        context = {"endpoint": endpoint, "state": state}
        text = render_to_string("gateway/alert_email.txt", context)
        send_mail(f"Signpost: {SUBJECTS[NoticeKind(kinds[-1])]}", text, None, [address])


def alert_email(tenant: str) -> str:
    """Return where alerts of a tenant go: what the admin says, else the configuration, or nowhere."""
    row = TenantAlerts.objects.filter(tenant=tenant).first()
    if row:
        return row.email
    declared = configuration.current().webhooks.alert_emails
    return next((entry.email for entry in declared if entry.tenant_id == tenant), "")


def _publish(
    kind: str, endpoint: Endpoint, state: endpoint_state.EndpointState
) -> None:
    events.publish(
        origin=Origin.system(endpoint.owner),
        event_type=f"endpoint.{kind}",
        data={
            "subscription_id": endpoint.public_id,
            "url": endpoint.url,
            "since": iso(state.since) if state.since else None,
            "attempts": state.attempts,
            "error": state.error or None,
            "message": state.sentence,
        },
    )
