"""The page of an account: its webhooks, its security, connected applications and personal tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from allauth.mfa.utils import is_mfa_enabled
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from recording.accounts import personal_tokens
from recording.accounts.owners import locked_account, owner_id, row_id
from recording.models import PersonalToken
from recording.oauth import grants
from recording.oauth.models import Application
from recording.webhooks import PROFILE
from webhooks_core.models import Endpoint
from webhooks_core.owners.state import Health

# Of each kind; the admin lists more.
LISTED = 100
REPEATED = "This form was sent before. Send it again to create another token."

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

    def create(self, user: Any, newest: str | None) -> personal_tokens.Created | None:
        """Create the token; None adds an error to the form.

        `newest` is the key of the account's newest token when the form was shown: a page that is
        reloaded sends its form again. Programs need not send it.
        """
        if not self.is_valid():
            return None
        try:
            with locked_account(user.pk):
                rows = PersonalToken.objects.filter(user=user.pk).order_by("-id")
                last = str(rows.values_list("pk", flat=True).first() or "")
                if newest not in {None, last}:
                    raise personal_tokens.TokenInputError(REPEATED)
                return personal_tokens.create(user=user, **self.cleaned_data)
        except personal_tokens.TokenInputError as error:
            self.add_error(None, str(error))
            return None


def account_page(*methods: str) -> Callable[[View], View]:
    """Show a page to an account that is logged in, for these methods; no cache keeps it."""

    def decorate(view: View) -> View:
        return never_cache(login_required(require_http_methods(methods)(view)))

    return decorate


@account_page("GET", "HEAD")
def account(request: HttpRequest) -> HttpResponse:
    """Show the page."""
    return _page(request, TokenForm())


@account_page("POST")
def create_token(request: HttpRequest) -> HttpResponse:
    """Create a personal token and show it, in this response only."""
    form = TokenForm(request.POST)
    created = form.create(request.user, request.POST.get("newest"))
    return _page(request, TokenForm() if created else form, created)


@account_page("POST")
def revoke_token(request: HttpRequest) -> HttpResponse:
    """Revoke one of the account's own tokens; 404 for any other."""
    pk = row_id(request.POST.get("token", ""))
    rows = PersonalToken.objects.filter(user=request.user.pk, pk=pk)
    if not rows.exists():
        raise Http404
    if rows.revoke(timezone.now()):
        messages.success(request, "The token was revoked.")
    return redirect("account")


@account_page("POST")
def disconnect(request: HttpRequest) -> HttpResponse:
    """End all that one application may do for the account."""
    application = Application.objects.find(request.POST.get("client_id", ""))
    if application is None:
        raise Http404
    if grants.disconnect(request.user, application):
        name = application.name or "The application without a name"
        messages.success(request, f"{name} was disconnected.")
    return redirect("account")


def _page(
    request: HttpRequest,
    form: TokenForm,
    created: personal_tokens.Created | None = None,
) -> HttpResponse:
    user, now = request.user, timezone.now()
    tokens = PersonalToken.objects.filter(user=user.pk).order_by("-id")[:LISTED]
    endpoints = Endpoint.objects.of(PROFILE, owner_id(user))  # type: ignore[arg-type]
    context = {
        "form": form,
        "created": created,
        "tokens": [(token, token.state(now)) for token in tokens],
        "applications": grants.connected_applications(user)[:LISTED],
        "endpoints": [(row, Health.of(row)) for row in endpoints],
        "has_second_step": is_mfa_enabled(user),
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/account.html", context, status=status)
