"""The forms of a login and of its second step: django-allauth's, with stricter checks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from allauth.account import forms as account_forms
from allauth.core import context
from allauth.mfa.adapter import get_adapter
from allauth.mfa.base.forms import AuthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
)
from django import forms
from django.conf import settings
from fido2.webauthn import AuthenticationResponse, RegistrationResponse

from recording.accounts import second_factors
from webhooks_core.secrets import EncryptedText, SecretUnreadableError

log = structlog.stdlib.get_logger("signpost.oauth")

MAX_ANSWER = 20_000
MAX_NAME = 100


class LoginForm(account_forms.LoginForm):
    """Its field has the name that browsers and programs know: `username`."""

    def add_prefix(self, field_name: str) -> str:
        return str(
            super().add_prefix("username" if field_name == "login" else field_name)
        )


class CodeForm(AuthenticateForm):
    """A code of the app, or a recovery code."""

    def clean_code(self) -> str:
        code: str = self.cleaned_data["code"]
        self.authenticator = second_factors.use(self.user, code)
        if self.authenticator is None:
            raise get_adapter().validation_error("incorrect_code")
        return code


class ActivateForm(ActivateTOTPForm):
    """The first code of an app, whose key waits in the session: encrypted."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        session = context.request.session
        if stored := session.pop(SECRET_SESSION_KEY, None):
            try:
                session[SECRET_SESSION_KEY] = EncryptedText(stored).decrypt()
            except SecretUnreadableError:
                log.info("key of a new authenticator app unreadable")  # it gets another
        super().__init__(*args, **kwargs)
        encrypted = EncryptedText.encrypt(self.secret)
        session[SECRET_SESSION_KEY] = encrypted.ciphertext


class AnswerField(forms.JSONField):
    """What a browser says of a passkey. No text fails it otherwise than by a ValidationError."""

    widget = forms.HiddenInput

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and len(value) > MAX_ANSWER:
            raise forms.ValidationError("This is too long.")
        with _refusing():
            return super().to_python(value)


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse whatever is malformed: the library raises many exceptions."""
    try:
        yield
    except forms.ValidationError:
        raise
    except Exception as error:
        log.info("passkey refused", exc_info=True)
        raise get_adapter().validation_error("incorrect_code") from error


def _check_origin(response: Any) -> None:
    """Accept this origin alone; the library accepts those of subdomains too."""
    if response.client_data.origin != settings.BASE_URL:
        raise get_adapter().validation_error("incorrect_code")


class NameMixin(forms.Form):
    """The name of a passkey, which lists and e-mails show."""

    def clean_name(self) -> str:
        name = " ".join(self.cleaned_data["name"].split())[:MAX_NAME]
        if name and name.isprintable():
            return name
        kind = Authenticator.Type.WEBAUTHN
        return str(get_adapter().generate_authenticator_name(None, kind))


class AddPasskeyForm(NameMixin, AddWebAuthnForm):
    """A new passkey."""

    credential = AnswerField()

    def clean(self) -> Any:
        with _refusing():
            if credential := self.cleaned_data.get("credential"):
                _check_origin(RegistrationResponse.from_dict(credential).response)
            return super().clean()


class UsePasskeyForm(AuthenticateWebAuthnForm):
    """A passkey at the second step of a login."""

    credential = AnswerField()

    def clean_credential(self) -> Authenticator:
        with _refusing():
            answer = AuthenticationResponse.from_dict(self.cleaned_data["credential"])
            _check_origin(answer.response)
            passkey = super().clean_credential()
            counter = answer.response.authenticator_data.counter
            if second_factors.count_use(passkey, counter):
                return passkey
            raise get_adapter().validation_error("incorrect_code")


class RenamePasskeyForm(NameMixin, EditWebAuthnForm):
    """Another name of a passkey."""
