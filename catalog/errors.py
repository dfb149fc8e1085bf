"""Refusals of the catalogue: one class per failure, each with its public code."""

from __future__ import annotations

from typing import Any


class CatalogError(Exception):
    """A refusal whose message and extensions a client may see."""

    code = "BAD_REQUEST"

    def __init__(self, message: str, **extensions: Any) -> None:
        super().__init__(message)
        self.extensions: dict[str, Any] = {"code": self.code, **extensions}


class BadUserInputError(CatalogError):
    """A value that the catalogue does not accept; `extensions.field` names it."""

    code = "BAD_USER_INPUT"


class NotFoundError(CatalogError):
    """A record that does not exist; `extensions.field` names the argument."""

    code = "NOT_FOUND"

    def __init__(self, record: str, *, field: str) -> None:
        super().__init__(f"There is no {record} with this id.", field=field)


class AuthorHasBooksError(CatalogError):
    """An author who cannot be deleted because of `extensions.bookCount` books."""

    code = "AUTHOR_HAS_BOOKS"

    def __init__(self, book_count: int) -> None:
        noun = "book" if book_count == 1 else "books"
        super().__init__(
            f"The author has {book_count} {noun}: delete or reassign them first.",
            bookCount=book_count,
        )


class UnauthenticatedError(CatalogError):
    """A change without a valid personal token."""

    code = "UNAUTHENTICATED"


class ForbiddenError(CatalogError):
    """A change with the token of a user who may not change the catalogue."""

    code = "FORBIDDEN"


class QueryTooComplexError(CatalogError):
    """A document that exceeds a limit."""

    code = "QUERY_TOO_COMPLEX"

    def __init__(self, limit: str, maximum: int) -> None:
        super().__init__(
            f"The query is too complex: {limit} must be at most {maximum:,}.",
            limit=limit,
            maximum=maximum,
        )


class ResultTooLargeError(CatalogError):
    """An answer that takes more rows, bytes or seconds than one answer may take."""

    code = "RESULT_TOO_LARGE"

    def __init__(self, limit: int, unit: str) -> None:
        super().__init__(
            f"The answer would take more than {limit:,} {unit}: "
            "ask for less, or page through `books`.",
            limit=limit,
        )
