"""Where our rules differ from django-allauth's."""

from __future__ import annotations

import time
from smtplib import SMTPException
from typing import Any
from urllib.parse import urlsplit

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.authentication import get_authentication_records
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.http import HttpRequest
from django.utils.http import MAX_URL_LENGTH

from recording.throttles import client_address
from webhooks_core.secrets import EncryptedText

RECENT_S = 600

log = structlog.stdlib.get_logger("signpost.accounts")


def is_recent_login(request: HttpRequest) -> bool:
    """Return True if this browser proved who it is within the last ten minutes."""
    records = get_authentication_records(request, request.user)
    return any(time.time() - record["at"] < RECENT_S for record in records)


def has_second_factor(request: HttpRequest) -> bool:
    """Return True if the login of this browser had a second step."""
    records = get_authentication_records(request, request.user)
    return any(record["method"] == "mfa" for record in records)


class AccountAdapter(DefaultAccountAdapter):
    """Operators create accounts; links lead to BASE_URL; limits count `client_address`."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def is_reauthentication_required(self, *, app: str, **_: Any) -> bool:
        return not is_recent_login(self.request)

    def is_safe_url(self, url: str) -> bool:
        # The request of an application may be longer than Django reads: its beginning decides.
        return bool(super().is_safe_url(url[:MAX_URL_LENGTH]))

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)

    def _get_login_attempts_cache_key(
        self, request: HttpRequest, **credentials: Any
    ) -> str:
        # By name and address together, so that no stranger can lock out an operator.
        key = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{key}:{client_address(request)}"

    def authentication_failed(self, request: HttpRequest, **_: Any) -> None:
        log.info("login failed", address=client_address(request))

    def get_reset_password_from_key_url(self, key: str) -> str:
        return _at_base_url(super().get_reset_password_from_key_url(key))

    def get_email_confirmation_url(
        self, request: HttpRequest, emailconfirmation: Any
    ) -> str:
        url = super().get_email_confirmation_url(request, emailconfirmation)
        return _at_base_url(url)

    def send_mail(
        self, template_prefix: str, email: str, context: dict[str, Any]
    ) -> None:
        """Log an e-mail that cannot be sent: what it tells about has happened."""
        try:
            super().send_mail(template_prefix, email, context)
        except (OSError, SMTPException):
            log.exception("e-mail not sent", template=template_prefix)


def _at_base_url(url: str) -> str:
    """Return an address of this site with the origin of BASE_URL in place of the Host header."""
    base: str = settings.BASE_URL
    return base + urlsplit(url)._replace(scheme="", netloc="").geturl()


class MFAAdapter(DefaultMFAAdapter):
    """Keys of authenticator apps and recovery codes are encrypted; BASE_URL names the site."""

    def encrypt(self, text: str) -> str:
        return EncryptedText.encrypt(text).ciphertext

    def decrypt(self, encrypted_text: str) -> str:
        return EncryptedText(encrypted_text).decrypt()

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": urlsplit(settings.BASE_URL).hostname or "", "name": "Signpost"}
