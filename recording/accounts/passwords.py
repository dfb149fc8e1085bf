"""A new password ends, if its form says so, what the old one gave."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import ChangePasswordForm, LoginForm, ResetPasswordKeyForm
from allauth.account.signals import password_changed, password_reset
from django import forms
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from recording.accounts.owners import locked_account
from recording.models import PersonalToken


class EndAccessForm(forms.Form):
    """Offers to end all applications and tokens; sessions end in any case."""

    end_access = forms.BooleanField(
        label="Disconnect all applications and revoke all tokens",
        required=False,
        initial=True,
    )
    field_order = ("oldpassword", "password1", "password2", "end_access")


class NameForm(LoginForm):
    """The form of a login; it offers a reset only where the e-mail for it can be sent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not settings.SENDS_EMAIL:
            self.fields["password"].help_text = ""


class ChangeForm(EndAccessForm, ChangePasswordForm):
    """The form of a change."""


class ResetForm(EndAccessForm, ResetPasswordKeyForm):
    """The form behind the link of an e-mail."""


def connect_signals() -> None:
    """Connect the receivers; called from AppConfig.ready."""
    password_changed.connect(_on_new_password)
    password_reset.connect(_on_new_password)


def _on_new_password(*, request: HttpRequest, user: Any, **_: Any) -> None:
    from recording.oauth import grants  # with DRF, which few commands need

    if "end_access" not in request.POST:
        return
    with locked_account(user.pk):
        grants.disconnect(user)
        PersonalToken.objects.filter(user=user.pk).revoke(timezone.now())
