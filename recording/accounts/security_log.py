"""The security log: what happened to an account, on its page, in e-mails and in metrics."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django_q.tasks import async_task
from prometheus_client import Counter

from recording.models import SecurityEvent
from recording.models.security import SecurityEventKind
from recording.oauth.throttles import client_address

Kind = SecurityEventKind

# Events that programs and strangers can cause again and again share one row for each day.
COUNTED = {
    Kind.LOGIN_FAILED,
    Kind.LOCKED,
    Kind.RESET_SENT,
    Kind.REFRESHED,
    Kind.TOKEN_REUSED,
    Kind.CODE_REPLAYED,
}
# The owner of the account gets an e-mail about these immediately.
MAILED = {
    Kind.PASSWORD_CHANGED,
    Kind.APP_ADDED,
    Kind.APP_REMOVED,
    Kind.PASSKEY_ADDED,
    Kind.PASSKEY_REMOVED,
    Kind.SECOND_STEP_REMOVED,
    Kind.CONNECTED,
    Kind.TOKEN_REUSED,
    Kind.CODE_REPLAYED,
}

# Not in prometheus_client's own registry: /metrics has one of its own.
events = Counter(
    "signpost_security_events",
    "Events of the security log that this process recorded.",
    ["kind"],
    registry=None,
)
for kind in Kind:
    events.labels(kind.value)  # there from the start, at zero


def record_own(kind: Kind, request: HttpRequest, subject: str = "") -> None:
    """Record what the account that is logged in did or suffered, as `record` does."""
    record(kind, request.user, request=request, subject=subject)


def record(
    kind: Kind, account: Any, *, request: HttpRequest | None = None, subject: str = ""
) -> None:
    """Record an event in the caller's transaction; `subject` names an application or a token."""
    events.labels(kind.value).inc()
    _record(kind, account.pk, subject=subject, **origin(request))


def record_failure(kind: Kind, request: HttpRequest, username: str) -> None:
    """Have a worker record a failed login, if there is such an account.

    So the answer takes as long for every name.
    """
    events.labels(kind.value).inc()  # here: nobody reads the metrics of a worker
    _queue(
        "recording.accounts.security_log.record_by_name",
        kind.value,
        username,
        **origin(request),
    )


def record_by_name(kind: str, username: str, **where: str) -> None:
    users = get_user_model().objects.filter(username=username)
    for pk in users.values_list("pk", flat=True):
        _record(Kind(kind), pk, **where)


def _record(kind: Kind, account_id: int, *, subject: str = "", **where: str) -> None:
    key = {"account_id": account_id, "kind": kind, "subject": subject[:255]}
    if kind in COUNTED and _count_again(key, where):
        return
    row = SecurityEvent.objects.create(**key, **where)
    if kind in MAILED and settings.SENDS_EMAIL:
        _queue("recording.accounts.security_log.send_email", row.pk)


def _count_again(key: dict[str, Any], where: dict[str, str]) -> bool:
    now = timezone.now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = SecurityEvent.objects.filter(**key, since__gte=midnight)
    latest = today.order_by("-pk").values("pk")[:1]
    rows = SecurityEvent.objects.filter(pk__in=latest)
    return bool(rows.update(count=F("count") + 1, at=now, **where))


def origin(request: HttpRequest | None) -> dict[str, str]:
    """Return where a request came from, as it is stored; nothing without a request."""
    if request is None:
        return {}
    agent = request.headers.get("User-Agent", "")[:300].replace("\x00", "")
    return {"address": client_address(request), "user_agent": agent}


def _queue(*task: Any, **options: str) -> None:
    def queue() -> None:
        async_task(*task, **options)

    # Robust: without the broker the event is still recorded.
    transaction.on_commit(queue, robust=True)


def send_email(pk: int) -> None:
    """Tell the owner of the account about an event."""
    event = SecurityEvent.objects.select_related("account").filter(pk=pk).first()
    if event is None or not event.account.email:
        return
    context = {"event": event, "base_url": settings.BASE_URL}
    text = render_to_string("accounts/security_email.txt", context)
    send_mail(f"Signpost: {event}", text, None, [event.account.email])
