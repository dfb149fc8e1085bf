"""Passkeys (WebAuthn) as the second step of a login; `fido2` checks what a browser sends."""

from __future__ import annotations

import hashlib
import json
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from fido2.server import Fido2Server
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialUserEntity,
)

from recording.oauth.models import Passkey

log = structlog.stdlib.get_logger("signpost.oauth")

# In the session: what the browser must sign. Each challenge is used once.
CHALLENGE = "passkey_challenge"
MAX_ANSWER = 20_000


def are_served() -> bool:
    """Return True if browsers allow passkeys for `BASE_URL`: they need a name, not an address."""
    try:
        ip_address(_host())
    except ValueError:
        return True
    return False


def _host() -> str:
    return urlsplit(settings.BASE_URL).hostname or ""


def _server() -> Fido2Server:
    return Fido2Server(
        PublicKeyCredentialRpEntity(name="Signpost", id=_host()),
        verify_origin=lambda origin: origin == settings.BASE_URL,
    )


def _credentials(account: Any) -> list[AttestedCredentialData]:
    rows = Passkey.objects.filter(user=account.pk).values_list("credential", flat=True)
    return [AttestedCredentialData(bytes(credential)) for credential in rows]


def creation_options(request: HttpRequest) -> str:
    """Return as JSON what the browser needs to make a passkey for the account."""
    account: Any = request.user
    user = PublicKeyCredentialUserEntity(
        name=account.get_username(),
        display_name=account.get_username(),
        # It stays on the device: not the account's id.
        id=salted_hmac(
            "recording.accounts.passkeys", str(account.pk), algorithm="sha256"
        ).digest(),
    )
    options, state = _server().register_begin(user, _credentials(account))
    request.session[CHALLENGE] = state
    return json.dumps(dict(options.public_key))


def request_options(request: HttpRequest, account: Any) -> str:
    """Return as JSON what the browser needs to use a passkey; "" if the account has none."""
    credentials = _credentials(account)
    if not credentials:
        return ""
    options, state = _server().authenticate_begin(credentials)
    request.session[CHALLENGE] = state
    return json.dumps(dict(options.public_key))


def register(request: HttpRequest, answer: str, *, name: str) -> bool:
    """Store the passkey that a browser has made; False if its answer is not valid."""
    account: Any = request.user
    state = request.session.pop(CHALLENGE, None)
    try:
        made = _server().register_complete(state, json.loads(answer[:MAX_ANSWER]))
    except Exception:
        log.info("passkey refused", exc_info=True)
        return False
    credential = made.credential_data
    if credential is None:
        return False
    _, is_new = Passkey.objects.get_or_create(
        digest=_digest(credential.credential_id),
        defaults={
            "user": account,
            "name": name,
            "credential": bytes(credential),
            "counter": made.counter,
        },
    )
    return is_new


def use(request: HttpRequest, account: Any, answer: str) -> bool:
    """Return True if the browser has signed the challenge with a passkey of this account."""
    state = request.session.pop(CHALLENGE, None)
    try:
        parsed = AuthenticationResponse.from_dict(json.loads(answer[:MAX_ANSWER]))
        known = _credentials(account)
        credential = _server().authenticate_complete(state, known, parsed)
    except Exception:
        log.info("passkey refused", exc_info=True)
        return False
    row = Passkey.objects.filter(digest=_digest(credential.credential_id)).first()
    counter = parsed.response.authenticator_data.counter
    return row is not None and row.count_use(counter)  # None: removed meanwhile


def _digest(credential_id: bytes) -> str:
    return hashlib.sha256(credential_id).hexdigest()
