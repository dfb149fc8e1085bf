"""What the tests of the two-step login share: its pages, and codes of an app."""

from __future__ import annotations

from base64 import b32decode
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.test import Client
from django.utils import timezone

from recording.accounts.second_factors import STEP_S
from tests.recording.accounts.browsers import LOGIN, PASSWORD, is_logged_in
from webhooks_core.secrets import EncryptedText

STEP, PAGE = "/accounts/login/code", "/accounts/two-step"


def make_app(account: Any) -> Authenticator:
    """Return an app in use, of which no code was used yet."""
    return totp.TOTP.activate(account, totp.generate_totp_secret()).instance


def code_at(key: str, *, now: float) -> str:
    """Return the code that an app with this key shows at a time."""
    app = TOTP(b32decode(key), 6, SHA1(), STEP_S)  # noqa: S303 - RFC 6238
    return app.generate(now).decode()


def code_of(app: Authenticator, *, steps: int = 0) -> str:
    app.refresh_from_db()
    now = timezone.now().timestamp() + steps * STEP_S
    return code_at(EncryptedText(app.data["secret"]).decrypt(), now=now)


def wrong_code(app: Authenticator) -> str:
    valid = {code_of(app, steps=steps) for steps in range(-3, 4)}
    return next(str(n) * 6 for n in range(10) if str(n) * 6 not in valid)


def password_step(path: str = LOGIN, **meta: Any) -> Client:
    client = Client(**meta)
    response = client.post(path, {"username": "ada", "password": PASSWORD})
    assert response["Location"] == STEP
    return client


def enter(client: Client, code: str) -> Any:
    return client.post(STEP, {"code": code})


def is_logged_in_by(code: str) -> bool:
    client = password_step()
    enter(client, code)
    return is_logged_in(client)
