"""Accounts of tokens that were looked up just now; a revocation in this process forgets them."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.contrib.auth.models import AbstractUser
from django.db import transaction

from webhooks_core.models import bearer

REMEMBERED_S = 5.0
MOST = 10_000

_accounts: dict[str, tuple[AbstractUser, float]] = {}
_revocations = 0


def recall(token: str) -> AbstractUser | None:
    """Return the account of a token that was valid a few seconds ago; None if it is not known."""
    account, at = _accounts.get(bearer.digest(token), (None, 0.0))
    # The clock may have been set back.
    return account if 0 <= time.time() - at < REMEMBERED_S else None


def find(
    token: str, look_up: Callable[[str], AbstractUser | None]
) -> AbstractUser | None:
    """Return the account of a token, and remember it."""
    if (account := recall(token)) is not None:
        return account
    before, at = _revocations, time.time()
    account = look_up(token)
    if account is not None and before == _revocations:
        if len(_accounts) >= MOST:
            _accounts.clear()
        _accounts[bearer.digest(token)] = account, at
    return account


def revoked() -> None:
    """Forget all accounts: now, for what this transaction does next, and when others see it."""
    forget()
    transaction.on_commit(forget)


def forget() -> None:
    global _revocations  # noqa: PLW0603 - a counter of this process
    _revocations += 1
    _accounts.clear()
