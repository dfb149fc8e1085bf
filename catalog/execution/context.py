"""The state of one request that its resolvers share, and the limits of its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.module_loading import import_string

from catalog.conf import option
from catalog.errors import ForbiddenError, ResultTooLargeError, UnauthenticatedError

MOST_CHARACTERS = 10_000_000
MOST_VALUES = 2_000_000  # each takes memory, a number and a null too


class Budget:
    """The rows, values and characters of text that one answer may still have, each as often as it appears."""

    def __init__(
        self,
        rows: int,
        characters: int = MOST_CHARACTERS,
        values: int = MOST_VALUES,
    ) -> None:
        self.limit = self.left = rows
        self.characters_limit = self.characters_left = characters
        self.values_limit = self.values_left = values

    @property
    def enough(self) -> int:
        """How many rows a query must fetch to show that there are too many."""
        return self.left + 1

    def spend(self, rows: int) -> None:
        """Take rows from the budget, or raise ResultTooLargeError."""
        if rows > self.left:
            raise ResultTooLargeError(self.limit)
        self.left -= rows

    def spend_values(self, values: int) -> None:
        """Take values of fields from the budget, or raise ResultTooLargeError."""
        if values > self.values_left:
            raise ResultTooLargeError(self.values_limit, "values")
        self.values_left -= values

    def spend_text(self, characters: int) -> None:
        """Take characters from the budget, or raise ResultTooLargeError."""
        if characters > self.characters_left:
            raise ResultTooLargeError(self.characters_limit, "characters")
        self.characters_left -= characters


@dataclass(slots=True)
class Context:
    """One request: its id in the log, its bearer token and right, and its budget."""

    request_id: str = ""
    bearer: str | None = None
    may_change: bool = False
    budget: Budget = field(default_factory=lambda: Budget(option("CATALOG_ROW_BUDGET")))

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
