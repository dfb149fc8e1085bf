"""The state of one request that its resolvers share, and the limits of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.utils.module_loading import import_string

from catalog.conf import option
from catalog.errors import ForbiddenError, ResultTooLargeError, UnauthenticatedError

MOST_CHARACTERS = 10_000_000


class RowBudget:
    """The rows that one answer may still have; a row counts as often as it appears."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    @property
    def enough(self) -> int:
        """How many rows a query must fetch to show that there are too many."""
        return self.left + 1

    def spend(self, rows: int) -> None:
        """Take rows from the budget, or raise ResultTooLargeError."""
        if rows > self.left:
            raise ResultTooLargeError(self.limit)
        self.left -= rows


def check_text(data: Any) -> None:
    """Raise ResultTooLargeError if the texts of an answer are too long together.

    A few rows with a long text each can appear in an answer many times: once per book of a
    category, and once per alias.
    """
    left, remaining = MOST_CHARACTERS, [data]
    while remaining:
        value = remaining.pop()
        if isinstance(value, str):
            left -= len(value)
        elif isinstance(value, dict):
            remaining.extend(value.values())
        elif isinstance(value, list):
            remaining.extend(value)
        if left < 0:
            raise ResultTooLargeError(MOST_CHARACTERS, "characters")


@dataclass(slots=True)
class Context:
    """One request: its id in the log, its bearer token and right, and its remaining rows."""

    request_id: str = ""
    bearer: str | None = None
    may_change: bool = False
    budget: RowBudget = field(
        default_factory=lambda: RowBudget(option("CATALOG_ROW_BUDGET"))
    )

    def authorize_change(self) -> None:
        """Raise UnauthenticatedError or ForbiddenError unless this request may change rows."""
        if self.may_change or option("CATALOG_WRITES") == "open":
            return
        authenticator = option("CATALOG_TOKEN_AUTHENTICATOR")
        user = None
        if authenticator and self.bearer:
            user = import_string(authenticator)(self.bearer)
        if user is None or not user.is_active:
            raise UnauthenticatedError(
                "Changes need a personal token: send Authorization: Bearer <token>."
            )
        if not user.is_staff:
            raise ForbiddenError("Changes need the personal token of a staff user.")
        self.may_change = True
