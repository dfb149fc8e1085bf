"""An account's password: confirm it, change it, reset it by e-mail, and end what it gave."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.forms import (
    PasswordChangeForm,
    PasswordResetForm,
    SetPasswordForm,
)
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django_q.tasks import async_task

from recording.accounts import security_log, web_sessions
from recording.accounts.locks import locked_account
from recording.models import PersonalToken, SecurityEvent
from recording.oauth import grants

RESET_PAUSE_S = 60


def is_confirmed(request: HttpRequest, password: str) -> bool:
    """Return True for the password of the account that is logged in.

    A wrong one counts towards the lock of the login.
    """
    account: Any = request.user
    same = authenticate(request, username=account.get_username(), password=password)
    if same is None or same.pk != account.pk:
        security_log.record_own(security_log.Kind.LOGIN_FAILED, request)
        return False
    if same.get_session_auth_hash() != account.get_session_auth_hash():
        update_session_auth_hash(request, same)  # the hash was renewed, by Django
    return True


class ConfirmForm(forms.Form):
    """The password of the account, before something that a stolen session may not do."""

    password = forms.CharField(strip=False)

    def __init__(self, request: HttpRequest, data: Any = None) -> None:
        self.request = request
        super().__init__(data)

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not is_confirmed(self.request, password):
            raise forms.ValidationError("The password is not correct.")
        return password


class EndAccessMixin(forms.Form):
    """A new password, and if everything that the old one gave ends with it."""

    end_access = forms.BooleanField(required=False, initial=True)
    user: Any

    def change(self, request: HttpRequest) -> None:
        """Store the password and end every session; the caller renews its own."""
        with transaction.atomic():
            self.save()  # type: ignore[attr-defined] # of the form beside this class
            web_sessions.end_others(self.user)
            kind = security_log.Kind.PASSWORD_CHANGED
            security_log.record(kind, self.user, request=request)
            if self.cleaned_data["end_access"]:
                end_access(self.user)


class ChangeForm(EndAccessMixin, PasswordChangeForm):
    """Django's form; a wrong old password counts towards the lock of the login."""

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.request = request
        super().__init__(*args, **kwargs)

    def clean_old_password(self) -> str:
        password: str = self.cleaned_data["old_password"]
        if not is_confirmed(self.request, password):
            raise forms.ValidationError(self.error_messages["password_incorrect"])
        return password


class ResetForm(EndAccessMixin, SetPasswordForm):  # type: ignore[type-arg] # no generic at run time
    """The new password of an account that followed the link of an e-mail."""


def end_access(account: Any) -> None:
    """End every connection of an application and every personal token of this account."""
    with locked_account(account.pk):
        grants.disconnect(account)
        PersonalToken.objects.filter(user=account.pk).revoke(timezone.now())


class ResetRequestForm(PasswordResetForm):
    """Has a worker look the address up, so that the answer takes as long for every address."""

    def save(self, *_: Any, **__: Any) -> None:
        async_task(
            "recording.accounts.passwords.send_reset", self.cleaned_data["email"]
        )


class ResetEmailForm(PasswordResetForm):
    """Sends a link to the accounts of an address, to each at most once a minute."""

    def get_users(self, email: str) -> Iterator[Any]:
        return filter(_is_due, super().get_users(email))


def _is_due(account: Any) -> bool:
    """Return True, and record it, if an account may get a link now.

    The log counts for all workers; without a Redis each has a cache of its own.
    """
    now = timezone.now()
    pause = now - timedelta(seconds=RESET_PAUSE_S), now
    sent = SecurityEvent.objects.filter(
        account=account.pk, kind=security_log.Kind.RESET_SENT, at__range=pause
    )
    with locked_account(account.pk) as current:
        is_due = current is not None and not sent.exists()
        if is_due:
            security_log.record(security_log.Kind.RESET_SENT, account)
    return is_due


def send_reset(email: str) -> None:
    """Look for the accounts of an address and send them a link; a task."""
    form, site = ResetEmailForm({"email": email}), urlsplit(settings.BASE_URL)
    if form.is_valid():
        form.save(
            domain_override=site.netloc,
            use_https=site.scheme == "https",
            subject_template_name="accounts/reset_subject.txt",
            email_template_name="accounts/reset_email.txt",
        )
