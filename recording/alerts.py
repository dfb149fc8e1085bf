"""E-mails to an account about its webhooks: one when they are disabled, one when they work again."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from django_q.tasks import async_task

from recording.accounts.owners import row_id
from webhooks_core.models import Endpoint
from webhooks_core.owners import state
from webhooks_core.profiles import Notice, NoticeKind

SUBJECTS = {
    NoticeKind.DISABLED: "your webhook is disabled",
    NoticeKind.RECOVERED: "your webhook works again",
}


def on_notice(notice: Notice) -> None:
    """Have a worker send an e-mail about a notice."""
    if settings.SENDS_EMAIL:
        async_task("recording.alerts.send_email", notice.kind.value, notice.endpoint_id)


def send_email(kind: str, endpoint_id: str) -> None:
    """Tell the account of an endpoint what happened, and what it can do."""
    endpoint = Endpoint.objects.filter(public_id=endpoint_id, deleted_at=None).first()
    if endpoint is None:
        return
    users = get_user_model().objects.filter(is_active=True)
    account = users.filter(pk=row_id(endpoint.owner)).first()
    if account is None or not account.email:
        return
    page = reverse("account-webhooks:endpoint", args=[endpoint.public_id])
    context = {
        "endpoint": endpoint,
        "account": account,
        "state": state.describe(endpoint, for_owner=True),
        "page": settings.BASE_URL + page,
    }
    text = render_to_string("accounts/webhook_email.txt", context)
    subject = f"Signpost: {SUBJECTS[NoticeKind(kind)]}"
    send_mail(subject, text, None, [account.email])
