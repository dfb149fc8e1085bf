"""The demo data of a first start: a user, a catalogue, a recording, and sample webhooks."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.db import transaction

from catalog import demo as catalog_demo
from recording.library import demo as recording_demo

USER = "demo"


@dataclass(frozen=True, slots=True)
class NewSecrets:
    """The secrets that were created, to be shown once; `None` for one that existed already."""

    password: str | None
    personal_token: str | None


def is_wanted() -> bool:
    """Return True if the database is empty: there is no account."""
    return not get_user_model().objects.exists()


@transaction.atomic
def load() -> NewSecrets:
    """Create the missing parts of the demo data; change no existing row."""
    users, password = get_user_model().objects, None
    if (user := users.filter(username=USER).first()) is None:
        password = secrets.token_urlsafe(12)
        user = users.create_superuser(USER, f"{USER}@example.com", password)
    catalog_demo.load()
    return NewSecrets(password=password, personal_token=recording_demo.load(user=user))
