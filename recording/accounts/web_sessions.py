"""The web sessions of an account: where they are kept, what their page shows, how they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from recording.accounts import devices, security_log
from recording.accounts.locks import InactiveAccountError, active_account

log = structlog.stdlib.get_logger("signpost.oauth")

DEVICE = "device"
USE_RESOLUTION = timedelta(minutes=5)
MAX_LISTED = 100


class SessionStore(db.SessionStore):
    """Django's sessions in the database; each row names the account that is logged in."""

    @classmethod
    def get_model_class(cls) -> Any:
        from recording.oauth.models import WebSession

        return WebSession

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row: Any = super().create_model_instance(data)
        row.account_id = data.get(SESSION_KEY)
        return row

    @property
    def is_loaded(self) -> bool:
        """Return True if the session was read: False too when the database did not answer."""
        return "_session_cache" in vars(self)


class SessionUseMiddleware:
    """Stores with each session where it is used and when, in steps of five minutes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        # A request that has not read the session does not use it, and must not read it now.
        if request.session.is_loaded and SESSION_KEY in request.session:  # type: ignore[attr-defined]
            _note_use(request)
        return response


def _note_use(request: HttpRequest) -> None:
    now, session = timezone.now(), request.session
    device = session.get(DEVICE)
    if device and now - datetime.fromisoformat(device["used_at"]) < USE_RESOLUTION:
        return
    is_saved_anyway = session.modified
    if device is None:
        # From now on and not from the last use: a stolen session ends too.
        session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))
    use = {"used_at": now.isoformat(), **security_log.origin(request)}
    session[DEVICE] = {"created_at": now.isoformat()} | (device or {}) | use
    try:
        _store_use(request, is_new=device is None, is_saved_anyway=is_saved_anyway)
    except UpdateError:
        pass  # it was ended meanwhile
    except InactiveAccountError:
        session.flush()
    except Error:
        log.warning("use of a session not stored", exc_info=True)
    if not is_saved_anyway:
        session.modified = False  # the browser's cookie stays as it is


def _store_use(request: HttpRequest, *, is_new: bool, is_saved_anyway: bool) -> None:
    """Store the session, and record the login that it began with. Raises InactiveAccountError."""
    account: Any = request.user
    is_login = is_new and account.is_authenticated
    if not is_saved_anyway:
        request.session.save()
    elif is_login:
        # A deactivation at this moment comes before the session, or ends it.
        with active_account(account):
            request.session.save()
    if is_login:  # on whichever page it was, the admin's too
        security_log.record_own(security_log.Kind.LOGIN, request)


@dataclass(frozen=True, slots=True)
class Listed:
    """A session as its page shows it. The id is not the key: the key is the secret."""

    id: str
    device: str
    address: str
    created_at: datetime | None
    used_at: datetime | None
    is_current: bool


def listed(account: Any, *, current: str | None) -> list[Listed]:
    """Return the live sessions of an account, the current one first, then the latest used."""
    sessions = [
        _listed(row.session_key, data.get(DEVICE, {}), current)
        for row, data in _live(account)
    ]
    never = datetime.min.replace(tzinfo=timezone.get_default_timezone())
    sessions.sort(key=lambda one: (one.is_current, one.used_at or never), reverse=True)
    return sessions[:MAX_LISTED]


def _live(account: Any) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the rows that log the account in: not those of an earlier password."""
    store, password = SessionStore(), account.get_session_auth_hash()
    rows = _rows(account).filter(expire_date__gt=timezone.now())
    for row in rows:
        data = store.decode(row.session_data)
        if constant_time_compare(data.get(HASH_SESSION_KEY, ""), password):
            yield row, data


def _listed(key: str, device: dict[str, str], current: str | None) -> Listed:
    def time(name: str) -> datetime | None:
        return datetime.fromisoformat(device[name]) if name in device else None

    return Listed(
        id=_public_id(key),
        device=devices.described(device.get("user_agent", "")),
        address=device.get("address", ""),
        created_at=time("created_at"),
        used_at=time("used_at"),
        is_current=key == current,
    )


def _public_id(key: str) -> str:
    return salted_hmac("recording.accounts.web_sessions", key).hexdigest()[:32]


def _rows(account: Any) -> Any:
    return SessionStore.get_model_class().objects.filter(account=account.pk)


def end(account: Any, public_id: str) -> bool:
    """End one session of this account; False if it has no such session."""
    rows = _rows(account)
    keys = rows.values_list("session_key", flat=True)
    found = [key for key in keys if constant_time_compare(_public_id(key), public_id)]
    return bool(rows.filter(session_key__in=found).delete()[0])


def end_others(account: Any, *, keep: str | None = None) -> int:
    """End the sessions of an account, all but one if it is given; return how many."""
    deleted: int = _rows(account).exclude(session_key=keep).delete()[0]
    return deleted
