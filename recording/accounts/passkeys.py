"""django-allauth's forms of passkeys, which fail on some answers that no browser sends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import structlog
from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms
from django.conf import settings
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
    """A new passkey; says where browsers refuse them: at an IP address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        site = urlsplit(settings.BASE_URL)
        if _is_address(site.hostname or ""):
            self.fields["name"].help_text = (
                f"Browsers have no security keys for {site.hostname}, only for names: "
                "set BASE_URL to one, as http://localhost:8000."
            )

    def clean_credential(self) -> Any:
        # The form stores what is false in Python, as 0, unread: no page shows such a passkey.
        if not self.cleaned_data["credential"]:
            raise get_adapter().validation_error("incorrect_code")
        return self.cleaned_data["credential"]

    def clean(self) -> Any:
        with refusing():
            return super().clean()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
