"""Where our rules differ from django-allauth's: what it stores, asks and says."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.http import url_has_allowed_host_and_scheme

from recording.accounts import devices, recent_login, security_log
from webhooks_core.secrets import EncryptedText

FERNET = "gAAAA"  # how each text of Fernet begins; no digest does


class AccountAdapter(DefaultAccountAdapter):
    """Logins: django-axes counts the failures, and the security log records them."""

    error_messages = DefaultAccountAdapter.error_messages | {
        "username_password_mismatch": AuthenticationForm.error_messages["invalid_login"]
        % {"username": "username"}
    }

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        name = credentials["username"]
        security_log.record_failure(security_log.Kind.LOGIN_FAILED, request, name)

    def get_login_stages(self) -> list[str]:
        return ["recording.accounts.second_factors.Stage"]

    def is_safe_url(self, url: str) -> bool:
        return url_has_allowed_host_and_scheme(url, allowed_hosts=None)

    def is_reauthentication_required(self, *, app: str, **_: Any) -> bool:
        return not recent_login.is_recent(self.request)

    def add_message(self, *_: Any, **__: Any) -> None:
        """Say nothing: our views have their own messages."""

    def is_ajax(self, request: HttpRequest) -> bool:
        return False  # these are pages


class MFAAdapter(DefaultMFAAdapter):
    """Second factors: keys are encrypted, and `BASE_URL` names the site of passkeys."""

    error_messages = DefaultMFAAdapter.error_messages | {
        "incorrect_code": "This is not valid. Each code works once."
    }

    def encrypt(self, text: str) -> str:
        return EncryptedText.encrypt(text).ciphertext

    def decrypt(self, encrypted_text: str) -> str:
        """Return a key of an app; digests of recovery codes are stored as they are."""
        if not encrypted_text.startswith(FERNET):
            return encrypted_text
        return EncryptedText(encrypted_text).decrypt()

    def is_mfa_enabled(self, user: Any, types: Any = None) -> bool:
        # None: the account was deleted during its login.
        return user is not None and bool(super().is_mfa_enabled(user, types))

    def get_totp_label(self, user: Any) -> str:
        return str(user.get_username())

    def generate_authenticator_name(self, user: Any, *_: Any) -> str:
        return devices.described(self.request.headers.get("User-Agent", ""))

    def get_public_key_credential_rp_entity(self) -> dict[str, str]:
        return {"id": urlsplit(settings.BASE_URL).hostname or "", "name": "Signpost"}

    def get_public_key_credential_user_entity(self, user: Any) -> dict[str, Any]:
        name = user.get_username()
        # It stays on the device: not the account's id.
        key = salted_hmac(
            "recording.accounts.passkeys", str(user.pk), algorithm="sha256"
        )
        return {"id": key.digest(), "display_name": name, "name": name}
