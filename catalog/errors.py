"""What the catalogue refuses to do: one class per failure, each with its public code."""

from __future__ import annotations

from typing import Any, Self


class CatalogError(Exception):
    """A refusal whose message and extensions a client may see."""

    code = "BAD_REQUEST"

    def __init__(self, message: str, **extensions: Any) -> None:
        super().__init__(message)
        self.extensions: dict[str, Any] = {"code": self.code, **extensions}


class BadUserInputError(CatalogError):
    """A value that the catalogue does not take; `extensions.field` names it."""

    code = "BAD_USER_INPUT"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)


class NotFoundError(CatalogError):
    """A record that is named but is not there; `extensions.field` names the argument."""

    code = "NOT_FOUND"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message, field=field)


class AuthorHasBooksError(CatalogError):
    """An author who cannot be deleted; `extensions.bookCount` says why."""

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

    def __init__(self) -> None:
        super().__init__(
            "Changes need a personal token: send Authorization: Bearer <token>."
        )


class ForbiddenError(CatalogError):
    """A change with the token of somebody who may not make it."""

    code = "FORBIDDEN"

    def __init__(self) -> None:
        super().__init__("Changes need the personal token of a staff user.")


class QueryTooComplexError(CatalogError):
    """A document beyond one of the limits; the message names the limit."""

    code = "QUERY_TOO_COMPLEX"

    @classmethod
    def beyond(cls, limit: str, maximum: int) -> Self:
        return cls(
            f"The query is too complex: {limit} must be at most {maximum:,}.",
            limit=limit,
            maximum=maximum,
        )


class ResultTooLargeError(CatalogError):
    """An answer that would hold more rows, or more text, than one answer may."""

    code = "RESULT_TOO_LARGE"

    def __init__(self, limit: int, of: str = "rows") -> None:
        super().__init__(
            f"The answer would hold more than {limit:,} {of}: "
            "ask for less, or page through books, authors or categories.",
            limit=limit,
        )
