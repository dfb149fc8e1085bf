"""Users as arguments of commands."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.management.base import CommandError


def user_named(username: str) -> AbstractUser:
    """Return the user of this name. Raises CommandError."""
    try:
        username.encode()
        return get_user_model().objects.get_by_natural_key(username)
    except (get_user_model().DoesNotExist, UnicodeEncodeError) as error:
        raise CommandError(f"there is no user named {username!r}") from error
