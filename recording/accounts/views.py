"""The page of an account: its webhooks, its security, connected applications and personal tokens."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from recording.accounts import personal_tokens
from recording.accounts.owners import owner_id, row_id
from recording.models import PersonalToken
from recording.oauth import grants
from recording.oauth.models import Application
from recording.webhooks import PROFILE
from webhooks_core.models import Endpoint
from webhooks_core.owners.state import Health
from webhooks_core.pages.base import secret_once, show_once

# Of each kind; the admin lists more.
LISTED = 100

View = Callable[..., HttpResponse]


class TokenForm(forms.Form):
    """The name of a token in lists, and its lifetime."""

    name = forms.CharField(max_length=100, required=False, strip=True)
    days = forms.IntegerField(
        label="Days until it expires",
        min_value=1,
        max_value=personal_tokens.MAX_DAYS,
        initial=90,
    )


def account_form(view: View) -> View:
    """Take a form of the page from an account that is logged in; GET, as after a login, shows it."""

    @wraps(view)
    def take(request: HttpRequest) -> HttpResponse:
        return view(request) if request.method == "POST" else redirect("account")

    allowed = require_http_methods(["GET", "HEAD", "POST"])
    return never_cache(login_required(allowed(take)))


@never_cache
@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return _page(request, TokenForm())


@account_form
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a personal token, which the account's page shows once."""
    user: Any = request.user
    form, page = TokenForm(request.POST), reverse("account")
    try:
        if form.is_valid():
            created = personal_tokens.create(user=user, **form.cleaned_data)
            return show_once(request, "The token was created.", page, created.text)
    except personal_tokens.TokenInputError as error:
        form.add_error(None, str(error))
    return _page(request, form)


@account_form
def revoke_token(request: HttpRequest) -> HttpResponse:
    """Revoke one of the account's own tokens; 404 for any other."""
    pk = row_id(request.POST.get("token", ""))
    rows = PersonalToken.objects.filter(user=request.user.pk, pk=pk)
    if not rows.exists():
        raise Http404
    if rows.revoke(timezone.now()):
        messages.success(request, "The token was revoked.")
    return redirect("account")


@account_form
def disconnect(request: HttpRequest) -> HttpResponse:
    """End all that one application may do for the account."""
    application = Application.objects.find(request.POST.get("client_id", ""))
    if application is None:
        raise Http404
    if grants.disconnect(request.user, application):
        name = application.name or "The application without a name"
        messages.success(request, f"{name} was disconnected.")
    return redirect("account")


def _page(request: HttpRequest, form: TokenForm) -> HttpResponse:
    user, now = request.user, timezone.now()
    tokens = PersonalToken.objects.filter(user=user.pk).order_by("-id")[:LISTED]
    endpoints = Endpoint.objects.of(PROFILE, owner_id(user))  # type: ignore[arg-type]
    context = {
        "form": form,
        "new_token": secret_once(request),
        "tokens": [(token, token.state(now)) for token in tokens],
        "applications": grants.connected_applications(user)[:LISTED],
        "endpoints": [(row, Health.of(row)) for row in endpoints],
        "has_second_step": is_mfa_enabled(user),
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/account.html", context, status=status)
