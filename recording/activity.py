"""Require an active account, and keep it active while something is created for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import AbstractUser

from recording.oauth.connections import locked_account


class InactiveAccountError(ValueError):
    """The account is inactive or deleted: nothing is created for it."""

    def __init__(self, account: AbstractUser) -> None:
        super().__init__(f"the account {account.get_username()!r} is inactive")


def check(account: AbstractUser) -> None:
    """Accept an active account or raise InactiveAccountError."""
    if not account.is_active:
        raise InactiveAccountError(account)


@contextmanager
def active_account(account: AbstractUser) -> Iterator[None]:
    """Open a transaction in which an account can be neither deleted nor deactivated.

    Raises InactiveAccountError.
    """
    with locked_account(account.pk) as current:
        if current is None or not current.is_active:
            raise InactiveAccountError(account)
        yield
