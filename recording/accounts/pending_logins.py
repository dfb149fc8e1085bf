"""A login between its two steps: the password was right, and nobody is logged in yet."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import get_user_model, login
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from recording.accounts.second_factors import VERIFIED

PENDING = "pending_login"
LIFETIME_S = 600


def begin(request: HttpRequest, account: Any) -> None:
    """Store in the session the account whose password was right, and where the login leads."""
    request.session.cycle_key()  # a session key that an attacker planted becomes useless
    request.session[PENDING] = {
        "account": str(account.pk),
        "backend": account.backend,
        "password": account.get_session_auth_hash(),
        "until": time.time() + LIFETIME_S,
        "next": request.POST.get("next", request.GET.get("next", "")),
    }


def account_of(request: HttpRequest) -> Any:
    """Return the account whose second step is awaited, or None.

    None too after ten minutes, and when the account became inactive or changed its password.
    """
    pending = request.session.get(PENDING)
    if pending is None or pending["until"] < time.time():
        return None
    users = get_user_model().objects.filter(is_active=True)
    account = users.filter(pk=pending["account"]).first()
    if account is None:
        return None
    is_same = constant_time_compare(
        pending["password"], account.get_session_auth_hash()
    )
    return account if is_same else None


def address_of(request: HttpRequest) -> str:
    """Return where the login leads: as its form gave it, so it is still to be checked."""
    address: str = request.session[PENDING]["next"]
    return address


def finish(request: HttpRequest, account: Any) -> None:
    """Log the account in after its second step."""
    backend = request.session.pop(PENDING)["backend"]
    login(request, account, backend=backend)
    request.session[VERIFIED] = True
