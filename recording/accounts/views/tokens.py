"""The page of an account's personal tokens: created, shown once, revoked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from recording.accounts import personal_tokens, security_log
from recording.accounts.views import FORM, account_page
from recording.ids import row_id
from recording.models import PersonalToken


class TokenForm(forms.Form):
    """The name of a token in lists, and its lifetime."""

    name = forms.CharField(max_length=100, required=False, strip=True)
    days = forms.IntegerField(
        min_value=1, max_value=personal_tokens.MAX_DAYS, initial=90
    )

    def create(self, user: Any) -> personal_tokens.Created | None:
        """Create the token; None adds an error to the form."""
        if not self.is_valid():
            return None
        try:
            return personal_tokens.create(user=user, **self.cleaned_data)
        except personal_tokens.TokenInputError as error:
            self.add_error(None, str(error))
            return None


@account_page(FORM)
def tokens_page(request: HttpRequest) -> HttpResponse:
    """List the account's tokens; POST creates one and shows it in this response only."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    created = form.create(request.user)
    if created:
        prefix = created.token.display_prefix
        security_log.record_own(security_log.Kind.TOKEN_CREATED, request, prefix)
    now = timezone.now()
    rows = PersonalToken.objects.filter(user=request.user.pk).order_by("-id")
    context = {
        "form": TokenForm() if created else form,
        "created": created,
        "tokens": [{"token": row, "state": row.state(now)} for row in rows],
    }
    status = 400 if form.errors else 200
    return render(request, "accounts/tokens.html", context, status=status)


@account_page(["POST"])
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke one of the account's own tokens; 404 for any other."""
    pk = row_id(request.POST.get("token", ""))
    rows = PersonalToken.objects.filter(user=request.user.pk, pk=pk)
    if not rows.exists():
        raise Http404
    if personal_tokens.revoke(rows, request):
        messages.success(request, "The token was revoked.")
    return redirect("account-tokens")
