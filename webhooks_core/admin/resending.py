"""Resend all that failed since a time, of all endpoints: first a question with numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from webhooks_core import profiles
from webhooks_core.admin.base import HistoryAdmin, operator
from webhooks_core.models import Delivery
from webhooks_core.owners import failures

# More of them are for the command: a request has little time.
REPLAYED_AT_ONCE = 1000
REPLAY_CHOICES = {1: "the last hour", 24: "24 hours", 168: "7 days", 720: "30 days"}


class ResendFailedAdmin(HistoryAdmin[Delivery]):
    """The admin of deliveries, as far as the page that resends all failed ones needs it."""

    pages = {"resend_failed": "resend-failed/"}

    def resend_failed(self, request: HttpRequest) -> HttpResponse:
        """Ask how far back, and count; POST sends again what was counted."""
        if request.method == "POST":
            return self._resend_failed(request)
        return self.render(
            request,
            "admin/webhooks_core/delivery/resend_failed.html",
            title="Resend all that failed",
            replay_choices=REPLAY_CHOICES,
            replay=question(
                request, lambda since: failures.count(since, most=REPLAYED_AT_ONCE)
            ),
            may_act=self.has_act_permission(request),
        )

    def _resend_failed(self, request: HttpRequest) -> HttpResponse:
        if not self.has_act_permission(request):
            raise PermissionDenied
        answer = redirect("admin:webhooks_core_delivery_resend_failed")
        if (since := time_of(request.POST.get("since", ""))) is None:
            self.message_user(request, "Since when? Count first.", "ERROR")
            return answer
        if failures.count(since, most=REPLAYED_AT_ONCE).found > REPLAYED_AT_ONCE:
            text = f"Nothing was queued: more than {REPLAYED_AT_ONCE} at once."
            self.message_user(request, text, "ERROR")
            return answer
        known = [profile.name for profile in profiles.registered()]
        rows = failures.endpoints_of(since).filter(profile__in=known)
        rows = rows.defer("custom_headers").order_by("pk")
        sent = failures.send_again(rows, since=since, by=operator(request))
        endpoint: Any
        for endpoint, queued in sent.queued.items():
            log = f"Replayed {queued} failed since {since:%F %T} UTC."
            self.log_change(request, endpoint, log)
        text = f"Queued {sent.total} again, 50 per second and endpoint."
        if sent.left_out:
            text += (
                f" Left out: what failed to {len(sent.left_out)} that receive nothing."
            )
        self.message_user(request, text)
        return answer


def question(
    request: HttpRequest, count: Callable[[datetime], Any]
) -> dict[str, Any] | None:
    """Count what would be sent again since a time, if the request asks for a count."""
    hours = request.GET.get("hours", "")
    if hours not in map(str, REPLAY_CHOICES):
        return None
    since = timezone.now() - timedelta(hours=int(hours))
    return {
        "hours": int(hours),
        "since": since,
        "count": count(since),
        "at_once": REPLAYED_AT_ONCE,
    }


def time_of(text: str) -> datetime | None:
    """Return a time with a zone, as the forms send it; None for any other text."""
    try:
        at = parse_datetime(text)
    except ValueError:
        return None
    return at if at and at.tzinfo else None
