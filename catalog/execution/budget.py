"""How many rows one operation may still put into its answer."""

from __future__ import annotations

from catalog.errors import ResultTooLargeError


class RowBudget:
    """The rows of one answer, counted as often as they appear in it."""

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    @property
    def enough(self) -> int:
        """How many rows a query needs to fetch to prove that it has too many."""
        return self.left + 1

    def spend(self, rows: int) -> None:
        """Take rows from the budget, or raise ResultTooLargeError."""
        if rows > self.left:
            raise ResultTooLargeError(self.limit)
        self.left -= rows
