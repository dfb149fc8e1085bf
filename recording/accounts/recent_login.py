"""Whether a login is recent enough for what a stolen session may not do."""

from __future__ import annotations

import time
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from recording.accounts.web_sessions import DEVICE

RECENT_S = 600
# In the session: when the password was given last.
CONFIRMED_AT = "password_confirmed_at"


def ask(request: HttpRequest, address: str) -> HttpResponse | None:
    """Return a redirect that asks for the password and then leads to `address`; None if recent."""
    if is_recent(request):
        return None
    query = urlencode({"next": address})
    return redirect(f"{reverse('account-confirm')}?{query}")


def is_recent(request: HttpRequest) -> bool:
    """Return True if the password was given in this session within the last ten minutes."""
    at = request.session.get(CONFIRMED_AT) or _logged_in_at(request)
    return 0 <= time.time() - at < RECENT_S


def _logged_in_at(request: HttpRequest) -> float:
    created_at = request.session.get(DEVICE, {}).get("created_at")
    return datetime.fromisoformat(created_at).timestamp() if created_at else 0.0


def note(request: HttpRequest) -> None:
    """Store that the password was given now."""
    request.session[CONFIRMED_AT] = time.time()
