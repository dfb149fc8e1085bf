"""The second page of a login: a code of the authenticator app, a passkey, or a recovery code."""

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

from recording.accounts import (
    logins,
    passkeys,
    pending_logins,
    second_factors,
    security_log,
)
from recording.accounts.views.pages import LoginPageMixin, locked_out
from recording.oauth.errors import OAuthError


class CodeForm(forms.Form):
    """A code of the app."""

    code = forms.CharField(max_length=40)


class StepForm(forms.Form):
    """A code of the app, a recovery code, or what the browser says of a passkey."""

    code = forms.CharField(max_length=40, required=False)
    credential = forms.CharField(required=False)


@method_decorator(never_cache, name="dispatch")
class SecondStep(LoginPageMixin, FormView[StepForm]):
    """Log in an account whose password was right and whose second factor is valid."""

    template_name = "accounts/second_step.html"
    form_class = StepForm
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

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        options = passkeys.request_options(self.request, self.account)
        return super().get_context_data(**context, passkey_options=options)

    def form_valid(self, form: StepForm) -> HttpResponse:
        if self._is_right(**form.cleaned_data):
            address = self.get_success_url()
            pending_logins.finish(self.request, self.account)
            return redirect(address)
        # As a wrong password does: it counts towards the lock.
        AxesProxyHandler.user_login_failed(
            __name__, {"username": self.account.get_username()}, self.request
        )
        security_log.record(
            security_log.Kind.LOGIN_FAILED, account=self.account, request=self.request
        )
        form.add_error(None, "This is not valid. Each code works once.")
        return self.form_invalid(form)

    def _is_right(self, *, code: str, credential: str) -> bool:
        if credential:
            return passkeys.use(self.request, self.account, credential)
        return second_factors.use(self.account, code, request=self.request)
