"""What a newcomer finds on the first start: a user to log in with, and something to look at."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from catalog import demo as catalog_demo
from recording import demo as recording_demo

USER = "demo"


@dataclass(frozen=True, slots=True)
class Made:
    """The secrets that were made, to be shown once; `None` where there was one already."""

    password: str | None
    personal_token: str | None


def is_wanted() -> bool:
    """Tell whether the database is empty: nobody has an account."""
    return not get_user_model().objects.exists()


@transaction.atomic
def load() -> Made:
    """Make what is missing of the demo data, and leave alone what is there."""
    users, password = get_user_model().objects, None
    if (user := users.filter(username=USER).first()) is None:
        password = secrets.token_urlsafe(12)
        user = users.create_superuser(USER, f"{USER}@example.com", password)
    catalog_demo.load()
    return Made(password=password, personal_token=recording_demo.load(user=user))
