"""The page of an account's two-step login: app, passkeys, recovery codes, removal."""

from __future__ import annotations

import time
from typing import Any

import segno
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from recording.accounts import (
    devices,
    logins,
    passkeys,
    second_factors,
    security_log,
    totp,
    web_sessions,
)
from recording.accounts.passwords import ConfirmForm
from recording.accounts.security_log import Kind
from recording.accounts.views.second_step import CodeForm
from recording.oauth.models import AuthenticatorApp, Passkey

REMOVE_PASSKEY = "remove-passkey-"
# In the session: until when the second half of adding a factor needs no password.
ADDS_UNTIL = "adds_second_factor_until"
ADDS_FOR_S = 600


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@logins.limited
def second_factor(request: HttpRequest) -> HttpResponse:
    """Show the state; POST changes it.

    It asks for the password, but in the second half of adding an app or a passkey.
    """
    if request.method != "POST":
        return _page(request)
    if "code" in request.POST or "credential" in request.POST:
        return _finish(request)
    form = ConfirmForm(request, request.POST)
    if not form.is_valid():
        return _page(request, form=form)
    action = request.POST.get("action", "")
    if action.startswith(REMOVE_PASSKEY):
        return _remove_passkey(request, action.removeprefix(REMOVE_PASSKEY))
    act = {
        "start": _start,
        "passkey": _start_passkey,
        "renew": _renew,
        "remove": _remove,
    }
    return act.get(action, _page)(request)


def _page(request: HttpRequest, **context: Any) -> HttpResponse:
    account = request.user
    context |= {
        "app": second_factors.app_of(account),
        "passkeys": Passkey.objects.filter(user=account.pk).order_by("pk"),
        "serves_passkeys": passkeys.are_served(),
        "unused_codes": second_factors.unused_recovery_codes(account),
    }
    status = 400 if "form" in context else 200
    return render(request, "accounts/second_factor.html", context, status=status)


def _start(request: HttpRequest) -> HttpResponse:
    app = second_factors.start_app(request.user)
    if app is None:
        return redirect("account-second-factor")
    request.session[ADDS_UNTIL] = time.time() + ADDS_FOR_S
    return _set_up(request, app)


def _finish(request: HttpRequest) -> HttpResponse:
    """Add the factor that this session has begun, soon after it gave the password.

    Another session would otherwise see the key of an app that its owner never confirmed.
    """
    if request.session.get(ADDS_UNTIL, 0) < time.time():
        messages.error(request, "That took too long. Begin again.")
        return redirect("account-second-factor")
    return _confirm(request) if "code" in request.POST else _add_passkey(request)


def _set_up(
    request: HttpRequest, app: AuthenticatorApp, **context: Any
) -> HttpResponse:
    """Show the key of an app that is not confirmed yet."""
    secret = app.secret.decrypt()
    address = totp.uri(secret, account_name=request.user.get_username())
    drawing = segno.make(address, error="m").svg_inline(scale=4, light="#fff")
    context |= {
        "qr_code": mark_safe(drawing),  # noqa: S308 - numbers and colours alone
        "key": " ".join(secret[at : at + 4] for at in range(0, len(secret), 4)),
    }
    status = 400 if "form" in context else 200
    return render(request, "accounts/second_factor_setup.html", context, status=status)


def _confirm(request: HttpRequest) -> HttpResponse:
    form = CodeForm(request.POST)
    app = AuthenticatorApp.objects.filter(
        user=request.user.pk, confirmed_at=None
    ).first()
    if app is None:
        return redirect("account-second-factor")
    code = form.cleaned_data["code"] if form.is_valid() else ""
    if not second_factors.confirm_app(request.user, "".join(code.split())):
        form.add_error(
            None, "This code is not valid. Is the clock of your device right?"
        )
        return _set_up(request, app, form=form)
    _record(request, Kind.APP_ADDED)
    return _added(request)


def _added(request: HttpRequest) -> HttpResponse:
    """End the sessions whose logins had one step; show recovery codes if there are none yet."""
    web_sessions.end_others(request.user, keep=request.session.session_key)
    request.session[second_factors.VERIFIED] = True
    request.session.pop(ADDS_UNTIL)
    if second_factors.unused_recovery_codes(request.user):
        messages.success(request, "It was added.")
        return redirect("account-second-factor")
    return _renew(request)


def _start_passkey(request: HttpRequest) -> HttpResponse:
    if not passkeys.are_served():
        return _page(request)
    request.session[ADDS_UNTIL] = time.time() + ADDS_FOR_S
    options = passkeys.creation_options(request)
    context = {"options": options, "device": _described(request)}
    return render(request, "accounts/second_factor_passkey.html", context)


def _described(request: HttpRequest) -> str:
    """Return the name that a new passkey has, unless its owner writes another."""
    return devices.described(request.headers.get("User-Agent", ""))


def _add_passkey(request: HttpRequest) -> HttpResponse:
    name = " ".join(request.POST.get("name", "").split())[:100] or _described(request)
    if not name.isprintable():
        name = _described(request)
    if passkeys.register(request, request.POST["credential"], name=name):
        _record(request, Kind.PASSKEY_ADDED, subject=name)
        return _added(request)
    messages.error(request, "The passkey was not added. Try again.")
    return redirect("account-second-factor")


def _renew(request: HttpRequest) -> HttpResponse:
    codes = second_factors.renew_recovery_codes(request.user)
    if codes:
        _record(request, Kind.RECOVERY_CODES_MADE)
    return _page(request, codes=codes)


def _remove(request: HttpRequest) -> HttpResponse:
    return _removed(request, second_factors.remove(request.user, request=request))


def _remove_passkey(request: HttpRequest, text: str) -> HttpResponse:
    return _removed(
        request, second_factors.remove_passkey(request.user, text, request=request)
    )


def _removed(request: HttpRequest, is_removed: bool) -> HttpResponse:
    if is_removed and second_factors.are_asked_for(request.user):
        messages.success(request, "The passkey was removed.")
    elif is_removed:
        request.session.pop(second_factors.VERIFIED, None)
        messages.success(request, "Logins ask for the password alone.")
    return redirect("account-second-factor")


def _record(request: HttpRequest, kind: Kind, *, subject: str = "") -> None:
    security_log.record(kind, account=request.user, request=request, subject=subject)
