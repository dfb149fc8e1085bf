"""Owners of recording's webhooks: accounts by their ids and names."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.management.base import CommandError

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
