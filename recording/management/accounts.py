"""Naming a user on the command line."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def user_named(username: str) -> User:
    """Return the user of this name. Raises CommandError."""
    try:
        username.encode()
        return User.objects.get_by_natural_key(username)
    except (User.DoesNotExist, UnicodeEncodeError) as error:
        raise CommandError(f"there is no user named {username!r}") from error
