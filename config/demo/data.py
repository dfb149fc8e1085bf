"""The demo data of a first start: a user, a catalogue, a recording, and sample webhooks."""

from __future__ import annotations

import secrets

from django.contrib.auth import get_user_model
from django.db import transaction

from catalog import demo as catalog_demo
from recording.library import demo as recording_demo

USER = "demo"


def is_wanted() -> bool:
    """Return True if the database is empty: there is no account."""
    return not get_user_model().objects.exists()


def has_user() -> bool:
    return get_user_model().objects.filter(username=USER).exists()


@transaction.atomic
def load() -> str:
    """Fill an empty database; return the password of the user, to be shown once."""
    users, password = get_user_model().objects, secrets.token_urlsafe(12)
    user = users.create_superuser(USER, f"{USER}@example.com", password)
    catalog_demo.load()
    recording_demo.load(user=user)
    return password
