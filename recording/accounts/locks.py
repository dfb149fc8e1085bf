"""Require an active account, and keep it active while something is created for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import transaction


class InactiveAccountError(ValueError):
    """The account is inactive or deleted: nothing is created for it."""

    def __init__(self, account: AbstractUser) -> None:
        super().__init__(f"the account {account.get_username()!r} is inactive")


def check(account: AbstractUser) -> None:
    """Accept an active account or raise InactiveAccountError."""
    if not account.is_active:
        raise InactiveAccountError(account)


@contextmanager
def locked_account(user_id: int) -> Iterator[Any]:
    """Open a transaction in which nobody else creates or revokes tokens of this account.

    Yields the user, or None if it was just deleted. Without one lock for both, a refresh that
    runs beside a revocation could store a token that the revocation does not see. The lock
    does not block foreign keys to the user.
    """
    with transaction.atomic():
        users = get_user_model().objects
        yield users.select_for_update(no_key=True).filter(pk=user_id).first()


@contextmanager
def active_account(account: AbstractUser) -> Iterator[None]:
    """Open a transaction in which an account can be neither deleted nor deactivated.

    Raises InactiveAccountError.
    """
    with locked_account(account.pk) as current:
        if current is None or not current.is_active:
            raise InactiveAccountError(account)
        yield
