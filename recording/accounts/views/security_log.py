"""The page of an account's security log."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from recording.accounts import devices
from recording.accounts.views import READ, account_page
from recording.models import SecurityEvent

PAGE = 50


@account_page(READ)
def security_log(request: HttpRequest) -> HttpResponse:
    """List what happened to the account, the latest first; `before` is the id of the last row."""
    own = SecurityEvent.objects.filter(account=request.user.pk).order_by("-pk")
    rows = list(own.before(request.GET.get("before", ""))[: PAGE + 1])
    context = {
        "rows": [
            (row, devices.described(row.user_agent) if row.user_agent else "")
            for row in rows[:PAGE]
        ],
        "older": rows[PAGE - 1].pk if len(rows) > PAGE else None,
    }
    return render(request, "accounts/security_log.html", context)
