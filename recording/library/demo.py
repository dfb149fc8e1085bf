"""The demo data of a user: one recording and one personal token."""

from __future__ import annotations

import orjson
from django.contrib.auth.models import AbstractUser

from recording.accounts import personal_tokens
from recording.library import importing
from recording.models import PersonalToken, Recording
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE

TOKEN_DAYS = 30


def load(*, user: AbstractUser) -> str | None:
    """Create a recording and a token unless the user has one; return the token's text.

    None if the user has a token already: its text is not stored.
    """
    if not Recording.objects.filter(account=user.pk).exists():
        importing.import_recording(
            account=user, raw=orjson.dumps(SUMMARY_COMPLETED_SAMPLE)
        )
    if PersonalToken.objects.filter(user=user.pk).exists():
        return None
    return personal_tokens.create(user=user, days=TOKEN_DAYS, name="demo").text
