"""The page that asks for the password again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from recording.accounts import logins, recent_login
from recording.accounts.passwords import ConfirmForm
from recording.accounts.views import FORM, account_page


@account_page(FORM)
@logins.limited
def confirm(request: HttpRequest) -> HttpResponse:
    """Ask for the password, then continue at `next`, an address of this site."""
    address = request.POST.get("next", request.GET.get("next", ""))
    is_ours = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    if not is_ours or not address.startswith("/"):
        address = reverse("account-overview")
    form = ConfirmForm(request, request.POST if request.method == "POST" else None)
    if form.is_valid():
        recent_login.note(request)
        return HttpResponseRedirect(address)
    context = {"form": form, "next": address}
    status = 400 if form.is_bound else 200
    return render(request, "accounts/confirm.html", context, status=status)
