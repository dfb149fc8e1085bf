"""How accounts get to the pages of their webhooks."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from recording.accounts.adapters import is_recent_login
from recording.subscriptions import Subscriptions
from recording.throttles import DESCRIPTIONS, AccountThrottle
from webhooks_core.pages.base import Door, Owner


class AccountDoor(Door):
    """Admits the account that is logged in, to everything."""

    base_template = "accounts/webhooks.html"

    def enter(self, request: HttpRequest) -> Owner | HttpResponse:
        if not request.user.is_authenticated:
            is_shown = request.method in {"GET", "HEAD"}
            start = reverse("account-webhooks:start")
            return redirect_to_login(request.get_full_path() if is_shown else start)
        return Owner(Subscriptions(cast("AbstractUser", request.user)))

    def confirm(self, request: HttpRequest, address: str) -> HttpResponse | None:
        if is_recent_login(request):
            return None
        query = urlencode({"next": address})
        return redirect(f"{reverse('account_reauthenticate')}?{query}")

    def check_rate(self, request: HttpRequest, action: str) -> None:
        # It reads the account of the request, and raises an error that names the limit.
        if action in DESCRIPTIONS:
            AccountThrottle(action).allow_request(request, None)
