"""The second page of a login: a code of the authenticator app, or a recovery code."""

from __future__ import annotations

from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.generic import FormView

from recording.oauth import logins, pending_logins, second_factors
from recording.oauth.errors import OAuthError
from recording.oauth.views.accounts import LoginPageMixin, locked_out


class CodeForm(forms.Form):
    """A code of either kind."""

    code = forms.CharField(max_length=40)


@method_decorator(never_cache, name="dispatch")
class SecondStep(LoginPageMixin, FormView[CodeForm]):
    """Logs in whose password was right, and whose code is."""

    template_name = "accounts/second_step.html"
    form_class = CodeForm
    next_page = settings.LOGIN_REDIRECT_URL

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        self.account = pending_logins.account_of(request)
        if self.account is None:
            return redirect("login")
        return super().dispatch(request, *args, **kwargs)

    def given_address(self) -> str:
        return pending_logins.address_of(self.request)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        credentials = {"username": self.account.get_username()}
        if not AxesProxyHandler.is_allowed(request, credentials):
            return locked_out(request, None, credentials)
        try:
            logins.count(request)
            return super().post(request, *args, **kwargs)
        except OAuthError as error:
            return logins.refused(request, error)

    def form_valid(self, form: CodeForm) -> HttpResponse:
        if second_factors.use(self.account, form.cleaned_data["code"]):
            address = self.get_success_url()
            pending_logins.finish(self.request, self.account)
            return redirect(address)
        # As a wrong password does: it counts towards the lock.
        AxesProxyHandler.user_login_failed(
            __name__, {"username": self.account.get_username()}, self.request
        )
        form.add_error("code", "This code is not valid. Each code works once.")
        return self.form_invalid(form)
