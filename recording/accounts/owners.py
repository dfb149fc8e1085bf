"""Owners of recording's webhooks: accounts by their ids and names, and kept active while they get something."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.management.base import CommandError
from django.db import transaction

LONGEST = 18  # digits of an id; every number of so many fits the column


def names_of(owners: Collection[str]) -> Mapping[str, str]:
    """Return the names of the users with these owner ids; absent ones are left out. One query."""
    rows = get_user_model().objects.filter(pk__in=set(map(row_id, owners)))
    names = rows.values_list("pk", get_user_model().USERNAME_FIELD)
    return {str(pk): name for pk, name in names}


def named(name: str) -> str:
    """Return the owner id of a user name that a command was given. Raises CommandError."""
    return owner_id(user_named(name))


def owner_id(account: AbstractUser) -> str:
    """Return the name by which the engine knows an account."""
    return str(account.pk)


def row_id(text: str) -> int:
    """Return the id that a text from a request is; 0, which no row has, for any other text."""
    is_id = text.isascii() and text.isdecimal() and len(text) <= LONGEST
    return int(text) if is_id else 0


def user_named(username: str) -> AbstractUser:
    """Return the user that an argument of a command names. Raises CommandError."""
    try:
        username.encode()
        return get_user_model().objects.get_by_natural_key(username)
    except (get_user_model().DoesNotExist, UnicodeEncodeError) as error:
        raise CommandError(f"there is no user named {username!r}") from error


class InactiveAccountError(ValueError):
    """The account is inactive or deleted: nothing is created for it."""

    def __init__(self, account: AbstractUser) -> None:
        super().__init__(f"the account {account.get_username()!r} is inactive")


def check_active(account: AbstractUser) -> None:
    """Accept an active account or raise InactiveAccountError."""
    if not account.is_active:
        raise InactiveAccountError(account)


@contextmanager
def locked_account(user_id: int) -> Iterator[Any]:
    """Open a transaction in which no other request creates or revokes tokens of this account.

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
