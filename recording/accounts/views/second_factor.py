"""The pages of an account's two-step login: app, passkeys, recovery codes.

They are django-allauth's, behind a recent login (`recent_login`). Ours are what follows a change.
"""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from allauth.mfa.base.views import IndexView
from allauth.mfa.recovery_codes.views import GenerateRecoveryCodesView
from allauth.mfa.totp.views import ActivateTOTPView, DeactivateTOTPView
from allauth.mfa.webauthn.views import (
    AddWebAuthnView,
    EditWebAuthnView,
    RemoveWebAuthnView,
)
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from recording.accounts import (
    recent_login,
    second_factors,
    security_log,
    web_sessions,
)
from recording.accounts.second_factors import VERIFIED
from recording.accounts.security_log import Kind


def passkeys_are_served() -> bool:
    """Return True if browsers allow passkeys for `BASE_URL`: they need a name, not an address."""
    try:
        ip_address(urlsplit(settings.BASE_URL).hostname or "")
    except ValueError:
        return True
    return False


@method_decorator(never_cache, name="dispatch")
class SecondFactors(IndexView):
    """Which factors the account has, and what can be done."""

    template_name = "accounts/second_factor.html"
    extra_context = {"serves_passkeys": passkeys_are_served}


@method_decorator(never_cache, name="dispatch")
class ChangeMixin(LoginRequiredMixin):
    """Asks for a recent login; then the page of a change, which leads back to the list."""

    success_url = reverse_lazy("mfa_index")
    request: HttpRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not request.user.is_authenticated:
            return self.handle_no_permission()
        asked = recent_login.ask(request, request.path)
        return asked or super().dispatch(request, *args, **kwargs)

    def get_success_url(self) -> str:
        return reverse("mfa_index")

    def show_codes(self) -> HttpResponse:
        """Make recovery codes and show them, in this response only."""
        codes = second_factors.renew_recovery_codes(self.request.user)
        security_log.record_own(Kind.RECOVERY_CODES_MADE, self.request)
        context = {"codes": codes}
        return render(self.request, "accounts/recovery_codes.html", context)

    def added(self, kind: Kind, subject: str = "") -> HttpResponse:
        """End the sessions whose logins had one step; show codes if there are none yet."""
        session = self.request.session
        security_log.record_own(kind, self.request, subject)
        web_sessions.end_others(self.request.user, keep=session.session_key)
        session[VERIFIED] = True
        if not second_factors.unused_recovery_codes(self.request.user):
            return self.show_codes()
        messages.success(self.request, "It was added.")
        return redirect("mfa_index")

    def removed(self, kind: Kind, subject: str = "") -> HttpResponse:
        if second_factors.are_asked_for(self.request.user):
            text = "It was removed."
        else:
            kind, subject = Kind.SECOND_STEP_REMOVED, ""
            self.request.session.pop(VERIFIED, None)
            text = "Logins ask for the password alone."
        security_log.record_own(kind, self.request, subject)
        messages.success(self.request, text)
        return redirect("mfa_index")


class AddApp(ChangeMixin, ActivateTOTPView):
    """The key of a new app, and its first code."""

    template_name = "accounts/second_factor_setup.html"

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            super().form_valid(form)
        except IntegrityError:  # it was added meanwhile
            return redirect("mfa_index")
        # So that this code cannot be used again for a login.
        second_factors.use(self.request.user, form.cleaned_data["code"])
        return self.added(Kind.APP_ADDED)

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        context = super().get_context_data(**context)
        secret = context["form"].secret
        groups = (secret[at : at + 4] for at in range(0, len(secret), 4))
        return context | {"key": " ".join(groups)}


class RemoveApp(ChangeMixin, DeactivateTOTPView):
    """The end of the app's codes."""

    template_name = "accounts/second_factor_remove.html"

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        return self.removed(Kind.APP_REMOVED)


class AddPasskey(ChangeMixin, AddWebAuthnView):
    """A new passkey, where browsers allow them."""

    template_name = "accounts/second_factor_passkey.html"

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not passkeys_are_served():
            raise Http404
        response: HttpResponseBase = super().dispatch(*args, **kwargs)
        return response

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        context = super().get_context_data(**context)
        options = context["js_data"]["creation_options"]["publicKey"]
        return context | {"options": json.dumps(options)}

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        return self.added(Kind.PASSKEY_ADDED, form.cleaned_data["name"])


class RenamePasskey(ChangeMixin, EditWebAuthnView):
    """Another name of a passkey."""

    template_name = "accounts/second_factor_rename.html"


class RemovePasskey(ChangeMixin, RemoveWebAuthnView):
    """The end of a passkey."""

    template_name = "accounts/second_factor_remove.html"

    def form_valid(self, form: Any) -> HttpResponse:
        super().form_valid(form)
        return self.removed(Kind.PASSKEY_REMOVED, str(self.object))


class RecoveryCodes(ChangeMixin, GenerateRecoveryCodesView):
    """New recovery codes, which replace the old ones."""

    template_name = "accounts/recovery_codes.html"

    def form_valid(self, form: Any) -> HttpResponse:
        return self.show_codes()
