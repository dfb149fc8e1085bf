"""What the resolvers of one request share."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings
from django.utils.module_loading import import_string

from catalog.errors import ForbiddenError, UnauthenticatedError
from catalog.execution.budget import RowBudget


def row_budget() -> RowBudget:
    return RowBudget(settings.CATALOG_ROW_BUDGET)


@dataclass(slots=True)
class Context:
    """One request: who asks, by which id it is logged, and what it may still cost."""

    request_id: str = ""
    bearer: str | None = None
    budget: RowBudget = field(default_factory=row_budget)

    def authorize_change(self) -> None:
        """Raise UnauthenticatedError or ForbiddenError unless this request may change rows."""
        if settings.CATALOG_WRITES == "open":
            return
        authenticate = import_string(settings.CATALOG_TOKEN_AUTHENTICATOR)
        user = authenticate(self.bearer) if self.bearer else None
        if user is None or not user.is_active:
            raise UnauthenticatedError
        if not user.is_staff:
            raise ForbiddenError
