"""How many rows one operation may still put into its answer."""

from __future__ import annotations

from typing import Any

from catalog.errors import ResultTooLargeError

MOST_CHARACTERS = 10_000_000


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


def check_text(data: Any) -> None:
    """Raise ResultTooLargeError when the texts of an answer are too long together.

    A few rows with a long text each can be answered many times over: once per book of a
    category, and once per alias.
    """
    left, waiting = MOST_CHARACTERS, [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            left -= len(value)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        if left < 0:
            raise ResultTooLargeError(MOST_CHARACTERS, "characters")
