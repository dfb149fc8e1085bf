"""The second page of a login: a code of the authenticator app, a passkey, or a recovery code."""

from __future__ import annotations

import json
from typing import Any

from allauth.mfa.base.views import AuthenticateView
from allauth.mfa.webauthn.internal import auth as webauthn
from axes.handlers.proxy import AxesProxyHandler
from django.http import HttpRequest, HttpResponse

from recording.accounts import logins, second_factors, security_log
from recording.accounts.second_factors import VERIFIED
from recording.accounts.views.pages import LoginPageMixin, locked_out
from recording.oauth.errors import OAuthError

Kind = security_log.Kind


class SecondStep(LoginPageMixin, AuthenticateView):
    """Log in an account whose password was right and whose second factor is valid."""

    template_name = "accounts/second_step.html"

    @property
    def account(self) -> Any:
        return self.stage.login.user

    def given_address(self) -> str:
        return str(self.stage.login.redirect_url)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        credentials = {"username": self.account.get_username()}
        if not AxesProxyHandler.is_allowed(request, credentials):
            return locked_out(request, None, credentials)
        try:
            logins.count(request)
            response: HttpResponse = super().post(request, *args, **kwargs)
        except OAuthError as error:
            return logins.refused(request, error)
        return response

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        context = super().get_context_data(**context)
        options = context["js_data"]["request_options"]["publicKey"]
        context["form"] = self.form or context["form"]
        context["passkey_options"] = (
            json.dumps(options) if options["allowCredentials"] else ""
        )
        return context

    def form_valid(self, form: Any) -> HttpResponse:
        if "code" in form.cleaned_data:
            used = form.authenticator.type
            if used == second_factors.Type.RECOVERY_CODES:
                self._record(Kind.RECOVERY_CODE_USED)
        webauthn.clear_state()  # a challenge is for one purpose
        self.request.session[VERIFIED] = True
        response: HttpResponse = super().form_valid(form)
        return response

    def form_invalid(self, form: Any) -> HttpResponse:
        # As a wrong password does: it counts towards the lock.
        AxesProxyHandler.user_login_failed(
            __name__, {"username": self.account.get_username()}, self.request
        )
        self._record(Kind.LOGIN_FAILED)
        response: HttpResponse = super().form_invalid(form)
        return response

    def _record(self, kind: Kind) -> None:
        security_log.record(kind, self.account, request=self.request)
