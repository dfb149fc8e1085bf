"""What the resolvers of one request share."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.module_loading import import_string

from catalog.conf import option
from catalog.errors import ForbiddenError, UnauthenticatedError
from catalog.execution.budget import RowBudget


def row_budget() -> RowBudget:
    return RowBudget(option("CATALOG_ROW_BUDGET"))


@dataclass(slots=True)
class Context:
    """One request: who asks, by which id it is logged, and what it may still cost."""

    request_id: str = ""
    bearer: str | None = None
    budget: RowBudget = field(default_factory=row_budget)

    def authorize_change(self) -> None:
        """Raise UnauthenticatedError or ForbiddenError unless this request may change rows."""
        if option("CATALOG_WRITES") == "open":
            return
        authenticator = option("CATALOG_TOKEN_AUTHENTICATOR")
        user = None
        if authenticator and self.bearer:
            user = import_string(authenticator)(self.bearer)
        if user is None or not user.is_active:
            raise UnauthenticatedError
        if not user.is_staff:
            raise ForbiddenError
