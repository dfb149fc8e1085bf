"""The state of one request that its resolvers share."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.utils.module_loading import import_string

from catalog.conf import option
from catalog.errors import ForbiddenError, UnauthenticatedError
from catalog.execution.deadline import Deadline
from catalog.execution.limits import Budget


@dataclass(slots=True)
class Context:
    """One request: its id in the log, its bearer token and right, its budget and its time."""

    request_id: str = ""
    bearer: str | None = None
    may_change: bool = False
    budget: Budget = field(default_factory=lambda: Budget(option("CATALOG_ROW_BUDGET")))
    deadline: Deadline = field(
        default_factory=lambda: Deadline(option("CATALOG_TIME_LIMIT_S"))
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
