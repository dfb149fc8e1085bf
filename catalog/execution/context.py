"""The state of one request that its resolvers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.conf import settings
from django.utils.module_loading import import_string

from catalog.errors import ForbiddenError, UnauthenticatedError
from catalog.execution.deadline import Deadline
from catalog.execution.limits import Budget


@dataclass(slots=True)
class Context:
    """One request: its id in the log, its bearer token and right, its budget and its time."""

    request_id: str = ""
    bearer: str | None = None
    may_change: bool = False
    budget: Budget = field(default_factory=lambda: Budget(settings.CATALOG_ROW_BUDGET))
    deadline: Deadline = field(
        default_factory=lambda: Deadline(settings.CATALOG_TIME_LIMIT_S)
    )

    def authorize_change(self) -> None:
        """Raise UnauthenticatedError or ForbiddenError unless this request may change rows."""
        if self.may_change or settings.CATALOG_WRITES == "open":
            return
        authenticate = import_string(settings.CATALOG_TOKEN_AUTHENTICATOR)
        user = authenticate(self.bearer) if self.bearer else None
        if user is None or not user.is_active:
            raise UnauthenticatedError(
                "Changes need a personal token: send Authorization: Bearer <token>."
            )
        if not user.is_staff:
            raise ForbiddenError("Changes need the personal token of a staff user.")
        self.may_change = True
