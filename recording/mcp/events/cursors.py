"""Cursors: positions in the stored events of one account, which clients keep and cannot read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from recording.mcp.events.errors import InvalidParamsError
from webhooks_core import secrets
from webhooks_core.conf import webhook_settings

MAX_LENGTH = 512
FORM = re.compile(r"mcp-cursor (\d{1,18}) (\d{1,18}) (\d{1,15})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """Every event of the account up to the id `event` has been seen, as of `at`.

    Later events have greater ids: an account's events are published one after another.
    """

    account: int
    event: int
    at: datetime

    def cursor(self) -> str:
        """Return the position as clients get it."""
        milliseconds = int(self.at.timestamp() * 1000)
        return secrets.seal(f"mcp-cursor {self.account} {self.event} {milliseconds}")

    @classmethod
    def read(cls, cursor: str, *, account: int) -> Self:
        """Raises InvalidParamsError: a cursor of another account is as wrong as any other text."""
        match = None
        if len(cursor) <= MAX_LENGTH and cursor.isascii():
            try:
                match = FORM.fullmatch(secrets.unseal(cursor))
            except secrets.SecretUnreadableError:
                match = None
        if match is None or int(match[1]) != account:
            raise InvalidParamsError(
                "cursor is not one that this server gave to this account. Send null to start now."
            )
        at = datetime.fromtimestamp(int(match[3]) / 1000, UTC)
        return cls(account, int(match[2]), at)

    def floor(self, now: datetime, max_age_ms: int | None) -> datetime:
        """Return the time since when events are there and wanted."""
        oldest = now - timedelta(days=webhook_settings.RETENTION_DAYS)
        if max_age_ms is None:
            return oldest
        wanted = timedelta(milliseconds=min(max_age_ms, MAX_AGE_MS))
        return max(oldest, now - wanted)


MAX_AGE_MS = 1000 * 86_400 * 36_500  # longer ones are no different
