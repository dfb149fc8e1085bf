"""The login form, for accounts and for the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm

from recording.accounts import second_factors, security_log
from recording.accounts.logins import SecondStepRequiredError


class LoginForm(AuthenticationForm):
    """Refuses a name that no account can have before it is looked up or counted.

    Django's form limits it in HTML only, and PostgreSQL cannot store so long a name of a failed
    login.
    """

    def clean(self) -> dict[str, Any]:
        field: Any = self.fields["username"]
        if len(self.cleaned_data.get("username") or "") > field.max_length:
            raise self.get_invalid_login_error()
        try:
            cleaned: dict[str, Any] = super().clean()
        except forms.ValidationError:
            if self.request and (name := self.cleaned_data.get("username")):
                kind = security_log.Kind.LOGIN_FAILED
                security_log.record_failure(kind, self.request, name)
            raise
        account: Any = self.get_user()
        if account is not None and second_factors.are_asked_for(account):
            raise SecondStepRequiredError(account)
        return cleaned


class AdminLoginForm(LoginForm, AdminAuthenticationForm):
    """The same for staff only."""
