"""Personal API tokens: create, authenticate, prune."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.utils import timezone

from recording.accounts import owners
from recording.models import PersonalToken
from webhooks_core.models import bearer

PREFIX = "rec_pat_"
MAX_DAYS = 365
KEPT = timedelta(days=30)
DISPLAY_LENGTH = len(PREFIX) + 4


class TokenInputError(ValueError):
    """A token cannot be created as requested; the message says why."""


@dataclass(frozen=True, slots=True)
class Created:
    """A new token and its text, which is shown this once."""

    token: PersonalToken
    text: str


def create(*, user: AbstractUser, days: int, name: str = "") -> Created:
    """Create a token that expires after `days`, 1 to 365. Raises TokenInputError."""
    if not 1 <= days <= MAX_DAYS:
        raise TokenInputError(f"days must be between 1 and {MAX_DAYS}")
    if len(name) > 100:
        raise TokenInputError("the name is longer than 100 characters")
    if not name.isprintable():
        raise TokenInputError("the name holds characters that cannot be shown")
    text, now = bearer.make(PREFIX), timezone.now()
    row = PersonalToken(
        user_id=user.pk,
        name=name,
        display_prefix=text[:DISPLAY_LENGTH],
        digest=bearer.digest(text),
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    try:
        with owners.active_account(user):
            row.save(force_insert=True)
    except owners.InactiveAccountError as error:
        raise TokenInputError(str(error)) from error
    return Created(row, text)


def authenticate(token: str) -> AbstractUser | None:
    """Return the active user whose live personal token this is, or None. One query.

    At most once an hour a second query records the use.
    """
    if not bearer.is_well_formed(token, PREFIX):
        return None
    rows = PersonalToken.objects.select_related("user")
    row, now = rows.filter(digest=bearer.digest(token)).first(), timezone.now()
    if row is None or not row.user.is_active or row.state(now) != "live":
        return None
    row.use(now)
    return row.user


def prune() -> int:
    """Delete the tokens that ended a month ago: until then users see their state."""
    return PersonalToken.objects.ended(timezone.now() - KEPT).delete()[0]
