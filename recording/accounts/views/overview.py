"""The first page of an account: what there is, and whether all is well."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from recording.accounts import devices, second_factors
from recording.accounts.views import READ, account_page
from recording.models import PersonalToken, SecurityEvent
from recording.oauth import grants
from recording.subscriptions import owner_id
from recording.webhooks import PROFILE
from webhooks_core.models import Endpoint
from webhooks_core.owners.state import Health


@account_page(READ)
def overview(request: HttpRequest) -> HttpResponse:
    """Show the account's webhooks, applications, tokens and logins, each with its page."""
    account, now = request.user, timezone.now()
    tokens = PersonalToken.objects.filter(user=account.pk)
    rows = Endpoint.objects.of(PROFILE, owner_id(account)).order_by("-pk")  # type: ignore[arg-type]
    logins = SecurityEvent.objects.filter(
        account=account.pk, kind=SecurityEvent.Kind.LOGIN
    ).order_by("-pk")[:2]
    context = {
        "endpoints": [(row, Health.of(row)) for row in rows],
        "live_tokens": sum(token.state(now) == "live" for token in tokens),
        "applications": grants.connected_applications(account),
        "logins": [(login, devices.described(login.user_agent)) for login in logins],
        "has_second_step": second_factors.are_asked_for(account),
    }
    return render(request, "accounts/overview.html", context)
