"""The second step of a login: an authenticator app, passkeys, and recovery codes for both."""

from __future__ import annotations

import secrets
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils import timezone

from recording.accounts import security_log, totp
from recording.accounts.locks import locked_account
from recording.oauth.errors import TooManyRequestsError
from recording.oauth.models import AuthenticatorApp, Passkey, RecoveryCode
from webhooks_core.secrets import SecretUnreadableError
from webhooks_core.web import bearer

log = structlog.stdlib.get_logger("signpost.oauth")

# In the session: the login had a second step.
VERIFIED = "second_factor"
RECOVERY_CODES = 10
# 32 characters that look different. A code has 16 of them: 80 bits, so a fast hash suffices.
ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
RECOVERY_LENGTH, GROUP = 16, 4


class CodesLockedError(TooManyRequestsError):
    """Too many wrong codes for one account, from whichever addresses."""

    description = "Too many wrong codes for this account. Use a recovery code, or wait."


def app_of(account: Any) -> AuthenticatorApp | None:
    """Return the app that a login of this account must show a code of."""
    return AuthenticatorApp.objects.filter(
        user=account.pk, confirmed_at__isnull=False
    ).first()


def are_asked_for(account: Any) -> bool:
    """Return True if a login of this account has a second step."""
    has_passkey = Passkey.objects.filter(user=account.pk).exists()
    return has_passkey or app_of(account) is not None


def suffices(request: HttpRequest) -> bool:
    """Return True if this login may use the admin: with a second step, where it is required."""
    return not settings.REQUIRE_STAFF_SECOND_FACTOR or VERIFIED in request.session


def use(account: Any, code: str, *, request: HttpRequest | None = None) -> bool:
    """Use a code of the app or a recovery code, each once. Raises CodesLockedError."""
    code = "".join(code.split()).replace("-", "").lower()
    if code.isascii() and code.isdigit() and len(code) == totp.DIGITS:
        app = app_of(account)
        return app is not None and _use_app(app, code)
    if not _use_recovery_code(account, code):
        return False
    kind = security_log.Kind.RECOVERY_CODE_USED
    security_log.record(kind, account=account, request=request)
    return True


def _use_app(app: AuthenticatorApp, code: str) -> bool:
    now = timezone.now()
    # Counted first, so that simultaneous guesses are as few as successive ones.
    if not app.claim_try(now):
        cool_off = int(settings.AXES_COOLOFF_TIME.total_seconds())
        raise CodesLockedError(retry_after=cool_off)
    step = _step(app, code, now.timestamp())
    return step is not None and app.use_step(step)


def _step(app: AuthenticatorApp, code: str, now: float) -> int | None:
    try:
        return totp.matching_step(app.secret.decrypt(), code, now=now)
    except SecretUnreadableError:
        log.error("secret of an authenticator app unreadable", app=app.pk)  # noqa: TRY400
        return None


def _use_recovery_code(account: Any, code: str) -> bool:
    unused = RecoveryCode.objects.filter(
        user=account.pk, digest=bearer.digest(code), used_at=None
    )
    return unused.update(used_at=timezone.now()) == 1


def start_app(account: Any) -> AuthenticatorApp | None:
    """Store the key of an app that is not confirmed yet; None if there is a confirmed one."""
    with locked_account(account.pk):
        if app_of(account):
            return None
        app, _ = AuthenticatorApp.objects.update_or_create(
            user=account, defaults={"secret": totp.new_secret(), "last_step": 0}
        )
        app.refresh_from_db()
    return app


def confirm_app(account: Any, code: str) -> bool:
    """Require codes of the app from now on; False for a wrong code."""
    with locked_account(account.pk):
        app = AuthenticatorApp.objects.filter(user=account, confirmed_at=None).first()
        step = _step(app, code, timezone.now().timestamp()) if app else None
        if app is None or step is None:
            return False
        AuthenticatorApp.objects.filter(pk=app.pk).update(
            confirmed_at=timezone.now(), last_step=step, failures=0
        )
    return True


def renew_recovery_codes(account: Any) -> list[str]:
    """Replace the recovery codes; only their hashes are stored. Empty without a second step."""
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    with locked_account(account.pk):
        if not are_asked_for(account):
            return []
        RecoveryCode.objects.filter(user=account.pk).delete()
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user=account, digest=bearer.digest(code.replace("-", "")))
            for code in codes
        )
    return codes


def _new_recovery_code() -> str:
    text = "".join(secrets.choice(ALPHABET) for _ in range(RECOVERY_LENGTH))
    return "-".join(text[at : at + GROUP] for at in range(0, RECOVERY_LENGTH, GROUP))


def unused_recovery_codes(account: Any) -> int:
    return RecoveryCode.objects.filter(user=account.pk, used_at=None).count()


def remove(account: Any, *, request: HttpRequest | None = None) -> bool:
    """Let the account log in by its password alone; False if it did so already."""
    factors = (AuthenticatorApp.objects, Passkey.objects)
    with locked_account(account.pk):
        RecoveryCode.objects.filter(user=account.pk).delete()
        deleted = sum(rows.filter(user=account.pk).delete()[0] for rows in factors)
        if deleted:
            kind = security_log.Kind.SECOND_STEP_REMOVED
            security_log.record(kind, account=account, request=request)
    return bool(deleted)


def remove_passkey(account: Any, pk: str, *, request: HttpRequest) -> bool:
    """Remove a passkey, the last factor with its recovery codes; False if it is not there.

    `pk` may be any text from a request.
    """
    with locked_account(account.pk):
        own = Passkey.objects.filter(user=account.pk)
        passkey = next((row for row in own if str(row.pk) == pk), None)
        if passkey is None:
            return False
        if len(own) == 1 and app_of(account) is None:
            return remove(account, request=request)
        passkey.delete()
        kind = security_log.Kind.PASSKEY_REMOVED
        security_log.record(
            kind, account=account, request=request, subject=passkey.name
        )
    return True
