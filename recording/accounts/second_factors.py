"""The second step of a login: what django-allauth's factors must fulfil besides."""

from __future__ import annotations

import base64
import secrets
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import structlog
from allauth.mfa.models import Authenticator
from allauth.mfa.stages import AuthenticateStage
from allauth.mfa.utils import is_mfa_enabled
from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.conf import settings
from django.contrib.auth import logout
from django.db import transaction
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare

from recording.accounts import security_log
from recording.oauth.errors import TooManyRequestsError
from webhooks_core.models import bearer
from webhooks_core.models.reencryption import StoredText
from webhooks_core.secrets import EncryptedText, SecretUnreadableError

log = structlog.stdlib.get_logger("signpost.oauth")

Type = Authenticator.Type
FACTORS = (Type.TOTP, Type.WEBAUTHN)
# In the session: the login had a second step.
VERIFIED = "second_factor"
DIGITS, STEP_S = 6, 30
# Clocks differ, and people type slowly (RFC 6238 section 5.2).
DRIFT_STEPS = 1
MAX_WRONG_CODES = 10
RECOVERY_CODES = 10
# 32 characters that look different. A code has 16 of them: 80 bits, so a fast hash suffices.
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
RECOVERY_LENGTH, GROUP = 16, 4


class CodesLockedError(TooManyRequestsError):
    """Too many wrong codes for one account, from whichever addresses."""

    description = "Too many wrong codes for this account. Use a recovery code, or wait."


class Stage(AuthenticateStage):
    """The second step of a login, which ends when the account or its password changes."""

    def handle(self) -> Any:
        self.state["password"] = self.login.user.get_session_auth_hash()
        response, goes_on = super().handle()
        if response and self.request.user.is_authenticated:
            logout(self.request)  # another account logs in
        elif response:  # a session key that an attacker planted becomes useless
            self.request.session.cycle_key()
        return response, goes_on

    def exit(self) -> Any:
        account, password = self.login.user, self.state["password"]
        is_same = constant_time_compare(password, account.get_session_auth_hash())
        return super().exit() if account.is_active and is_same else self.abort()


def are_asked_for(account: Any) -> bool:
    """Return True if a login of this account has a second step."""
    return bool(is_mfa_enabled(account, FACTORS))


def suffices(request: HttpRequest) -> bool:
    """Return True if this login may use the admin: with a second step, where it is required."""
    return not settings.REQUIRE_STAFF_SECOND_FACTOR or VERIFIED in request.session


def use(account: Any, code: str) -> Authenticator | None:
    """Use a code of the app or a recovery code, each once. Raises CodesLockedError.

    Returns the factor. allauth would remember codes for 30 seconds, and in the cache, which each
    process has of its own without a Redis.
    """
    code = "".join(code.split()).replace("-", "").lower()
    if code.isascii() and code.isdigit() and len(code) == DIGITS:
        return _use_app(account, code)
    codes = _rows(account, Type.RECOVERY_CODES).first()
    is_right = codes and codes.wrap().validate_code(bearer.digest(code))
    return codes if is_right else None


@transaction.atomic
def _use_app(account: Any, code: str) -> Authenticator | None:
    app = _rows(account, Type.TOTP).select_for_update().first()
    if app is None:
        return None
    now, pause = time.time(), settings.AXES_COOLOFF_TIME.total_seconds()
    is_pause_over = now - app.data.get("failed_at", 0) >= pause
    failures = 0 if is_pause_over else app.data["failures"]
    if failures >= MAX_WRONG_CODES:
        raise CodesLockedError(retry_after=int(pause))
    step = _step(app, code)
    is_new = step > app.data.get("last_step", 0)
    app.data |= (
        {"last_step": step, "failures": 0}
        if is_new
        else {"failures": failures + 1, "failed_at": now}
    )
    app.save(update_fields=["data"])
    return app if is_new else None


def _step(app: Authenticator, code: str) -> int:
    """Return the number of the 30 seconds that a code belongs to; 0 if it is not valid now."""
    try:
        key = base64.b32decode(EncryptedText(app.data["secret"]).decrypt())
    except SecretUnreadableError:
        log.error("secret of an authenticator app unreadable", app=app.pk)  # noqa: TRY400
        return 0
    codes = TOTP(key, DIGITS, SHA1(), STEP_S)  # noqa: S303 - RFC 6238
    current = int(time.time()) // STEP_S
    for step in range(current + DRIFT_STEPS, current - DRIFT_STEPS - 1, -1):
        if bytes_eq(codes.generate(step * STEP_S), code.encode()):
            return step
    return 0


@transaction.atomic
def count_use(passkey: Authenticator, counter: int) -> bool:
    """Store the counter of a passkey; False if it did not grow, as that of a copied key.

    Many devices do not count: then it is always 0 (WebAuthn section 6.1.1).
    """
    row = Authenticator.objects.select_for_update().get(pk=passkey.pk)
    before = row.data.get("counter", 0)
    if counter <= before and (counter or before):
        return False
    row.data["counter"] = counter
    row.save(update_fields=["data"])
    return True


def renew_recovery_codes(account: Any) -> list[str]:
    """Replace the recovery codes; only their hashes are stored. Empty without a second step.

    allauth would derive them from a stored seed. It uses up stored ones of another library, too:
    ours are stored as such.
    """
    if not are_asked_for(account):
        return []
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    digests = [bearer.digest(code.replace("-", "")) for code in codes]
    Authenticator.objects.update_or_create(
        user=account,
        type=Type.RECOVERY_CODES,
        defaults={"data": {"migrated_codes": digests}},
    )
    return codes


def _new_recovery_code() -> str:
    text = "".join(secrets.choice(ALPHABET) for _ in range(RECOVERY_LENGTH))
    return "-".join(text[at : at + GROUP] for at in range(0, RECOVERY_LENGTH, GROUP))


def unused_recovery_codes(account: Any) -> int:
    codes = _rows(account, Type.RECOVERY_CODES).first()
    return len(codes.data["migrated_codes"]) if codes else 0


def remove(account: Any) -> bool:
    """Let the account log in by its password alone; False if it did so already."""
    with transaction.atomic():
        deleted, _ = Authenticator.objects.filter(user=account.pk).delete()
        if deleted:
            security_log.record(security_log.Kind.SECOND_STEP_REMOVED, account)
    return bool(deleted)


def _rows(account: Any, kind: str) -> Any:
    return Authenticator.objects.filter(user=account.pk, type=kind)


def stored_keys() -> Iterator[StoredText]:
    """Yield the keys of all apps, for a change of the keys that encrypt them."""
    for app in Authenticator.objects.filter(type=Type.TOTP).order_by("pk").iterator():
        yield StoredText(EncryptedText(app.data["secret"]), partial(_replace, app.pk))


@transaction.atomic
def _replace(pk: int, old: EncryptedText, new: EncryptedText) -> int:
    rows = Authenticator.objects.select_for_update().filter(pk=pk)
    app = rows.first()
    if app is None or app.data["secret"] != old.ciphertext:
        return 0
    app.data["secret"] = new.ciphertext
    app.save(update_fields=["data"])
    return 1
