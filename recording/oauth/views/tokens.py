"""The page of an account's personal tokens: made here, shown once, revoked here."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from recording import tokens
from recording.models import PersonalToken


class TokenForm(forms.Form):
    """What a token needs: a name for lists, and when it ends."""

    name = forms.CharField(max_length=100, required=False, strip=True)
    days = forms.IntegerField(min_value=1, max_value=tokens.MAX_DAYS, initial=90)


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def personal_tokens(request: HttpRequest) -> HttpResponse:
    """List the account's tokens; POST makes one and shows it in the answer, nowhere else."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    created = _created(request.user, form) if form.is_valid() else None
    context = {
        "form": TokenForm() if created else form,
        "created": created,
        "tokens": _listed(request.user),
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/tokens.html", context, status=status)


def _created(user: Any, form: TokenForm) -> tokens.Created | None:
    try:
        return tokens.create(user=user, **form.cleaned_data)
    except tokens.TokenInputError as error:
        form.add_error(None, str(error))
        return None


def _listed(user: Any) -> list[dict[str, Any]]:
    now = timezone.now()
    rows = PersonalToken.objects.filter(user=user).order_by("-id")
    return [{"token": row, "state": row.state(now)} for row in rows]


@login_required
@require_POST
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke one of the account's own tokens; another's is not there."""
    chosen = request.POST.get("token", "")
    number = int(chosen) if chosen.isascii() and chosen.isdecimal() else 0
    own = PersonalToken.objects.filter(user=request.user.pk, pk=min(number, 2**63 - 1))
    if not own.exists():
        raise Http404
    if own.revoke(timezone.now()):
        messages.success(request, "The token was revoked.")
    return redirect("account-tokens")
