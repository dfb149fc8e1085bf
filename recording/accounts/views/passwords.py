"""The pages of a password: change it, or reset it by e-mail."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import (
    PasswordChangeView,
    PasswordResetConfirmView,
    PasswordResetView,
)
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import TemplateView

from recording.accounts import logins, passwords


class LimitedMixin:
    """POST is limited like a login, for it hashes passwords or names accounts."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        post = super().post  # type: ignore[misc] # of the view beside this class
        return logins.limited(post)(request, *args, **kwargs)


@method_decorator(never_cache, name="dispatch")
class Change(LimitedMixin, PasswordChangeView):
    """The account's own password, which ends every other session."""

    template_name = "accounts/password.html"
    form_class = passwords.ChangeForm
    success_url = reverse_lazy("account-password")

    def get_form_kwargs(self) -> dict[str, Any]:
        return super().get_form_kwargs() | {"request": self.request}

    def form_valid(self, form: Any) -> HttpResponse:
        form.change(self.request)
        update_session_auth_hash(self.request, form.user)
        messages.success(self.request, "The password was changed.")
        return redirect(self.get_success_url())


class WhereEmailIsSentMixin:
    """Answers 404 where no e-mail can be sent."""

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponse:
        if not settings.SENDS_EMAIL:
            raise Http404
        response: HttpResponse = super().dispatch(*args, **kwargs)  # type: ignore[misc]
        return response


class Reset(WhereEmailIsSentMixin, LimitedMixin, PasswordResetView):
    """Asks for an address. The answer is the same for every address."""

    template_name = "accounts/reset.html"
    form_class = passwords.ResetRequestForm
    success_url = reverse_lazy("password-reset-sent")


class ResetSent(WhereEmailIsSentMixin, TemplateView):
    template_name = "accounts/reset_sent.html"


class ResetConfirm(WhereEmailIsSentMixin, LimitedMixin, PasswordResetConfirmView):
    """The page behind the link of the e-mail; nobody is logged in by it."""

    template_name = "accounts/reset_confirm.html"
    form_class = passwords.ResetForm
    success_url = reverse_lazy("account_login")

    def form_valid(self, form: Any) -> HttpResponse:
        form.change(self.request)
        self.request.session.flush()
        messages.success(self.request, "The password was changed. Log in with it.")
        return redirect(self.get_success_url())
