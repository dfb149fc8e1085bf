"""django-allauth's forms of passkeys, which fail on some answers that no browser sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms
from django.core.exceptions import ValidationError

log = structlog.stdlib.get_logger("signpost.accounts")


@contextmanager
def refusing() -> Iterator[None]:
    """Refuse whatever is malformed: the library beneath raises many exceptions."""
    try:
        yield
    except ValidationError:
        raise
    except Exception as error:
        log.info("passkey refused", exc_info=True)
        raise get_adapter().validation_error("incorrect_code") from error


class AuthenticateForm(forms.AuthenticateWebAuthnForm):
    """A passkey at the second step of a login."""

    def clean_credential(self) -> Any:
        with refusing():
            return super().clean_credential()


class ReauthenticateForm(forms.ReauthenticateWebAuthnForm):
    """A passkey before a change."""

    def clean_credential(self) -> Any:
        with refusing():
            return super().clean_credential()


class AddForm(forms.AddWebAuthnForm):
    """A new passkey."""

    def clean_credential(self) -> Any:
        # The form stores what is false in Python, as 0, unread: no page shows such a passkey.
        if not self.cleaned_data["credential"]:
            raise get_adapter().validation_error("incorrect_code")
        return self.cleaned_data["credential"]

    def clean(self) -> Any:
        with refusing():
            return super().clean()
