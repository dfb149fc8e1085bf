"""The keys of a tenant, managed by a key with the scope `keys`, which operators alone give.

A key gives no right that it does not have. So what its request leaves out is what it has itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db.models import QuerySet
from django.utils import timezone

from gateway import keys
from gateway.errors import ForbiddenError, UnauthorizedError
from gateway.identity import KEYS, SCOPES, Caller, Rights
from gateway.keys import Created
from gateway.models import GatewayKey
from webhooks_core.web.errors import BadRequestError, NotFoundError

log = structlog.stdlib.get_logger(__name__)

OPERATORS_ONLY = "Operators alone give and revoke keys with the scope keys."


@dataclass(frozen=True, slots=True)
class TenantKeys:
    """The use cases of one manager: the caller of a key with the scope `keys`."""

    manager: Caller

    def all(self) -> QuerySet[GatewayKey]:
        """Return the tenant's keys that are not revoked, newest first."""
        rows = GatewayKey.objects.filter(tenant=self.manager.tenant, revoked_at=None)
        return rows.order_by("-id")

    def find(self, key_id: str) -> GatewayKey:
        """Return a key of the tenant. Raises 404, also for another tenant's."""
        # No query for what cannot be an id.
        if key_id.isascii() and key_id.isdigit() and len(key_id) <= 18:
            key = self.all().filter(pk=int(key_id)).first()
            if key is not None:
                return key
        raise NotFoundError("There is no such key.")

    def create(
        self,
        *,
        principal: str | None = None,
        name: str = "",
        scopes: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        expires_at: datetime | None = None,
        budget: Mapping[str, Any] | None = None,
    ) -> Created:
        """Create a key of the tenant.

        Raises 400 for its values, 403 for rights that the manager does not have.
        """
        own = self._own_key()
        rights = own.rights
        if scopes is None:
            scopes = sorted(rights.scopes - {KEYS})
        if models is None:
            models = own.allowed_models
        _check_rights(rights, scopes, models)
        if own.budget is not None:
            budget = budget or own.budget
            _check_budget(own.budget, budget)
        if own.expires_at is not None:
            expires_at = expires_at or own.expires_at
            if expires_at > own.expires_at:
                raise ForbiddenError("The key must not expire after yours.")
        try:
            created = keys.create(
                tenant=own.tenant,
                principal=own.principal if principal is None else principal,
                name=name,
                scopes=scopes,
                models=models,
                expires_at=expires_at,
                created_by=own.principal,
                budget=budget,
            )
        except keys.KeyInputError as error:
            raise BadRequestError(f"{error}.") from error
        self._log("gateway key created", created.key)
        return created

    def _own_key(self) -> GatewayKey:
        """Return the manager's key as it is now. Raises 401: it was revoked meanwhile."""
        live = GatewayKey.objects.live(timezone.now())
        own = live.filter(pk=self.manager.key_id or 0).first()
        if own is None:
            raise UnauthorizedError("The gateway key is not valid.", refused=True)
        return own

    def delete(self, key: GatewayKey) -> None:
        """Revoke a key. Raises 403 for a manager's, its own too; 404 if it was revoked first."""
        if KEYS in key.rights.scopes:
            raise ForbiddenError(OPERATORS_ONLY)
        if not keys.revoke([key.pk]):
            raise NotFoundError("There is no such key.")
        self._log("gateway key revoked", key)

    def _log(self, event: str, key: GatewayKey) -> None:
        """Log a change. What operators change, the admin keeps in its history."""
        log.info(
            event,
            key_id=key.pk,
            tenant=key.tenant,
            scopes=sorted(key.rights.scopes),
            by_key=self.manager.key_id,
        )


def _check_rights(
    own: Rights, scopes: Sequence[str], models: Sequence[str] | None
) -> None:
    if KEYS in scopes:
        raise ForbiddenError(OPERATORS_ONLY)
    known = {*scopes} & {*SCOPES}  # of others keys.create() says what is wrong
    if missing := sorted(known - own.scopes):
        raise ForbiddenError(f"Your key does not have the scope {missing[0]}.")
    if own.models is not None and (missing := sorted({*(models or ())} - own.models)):
        raise ForbiddenError(f"Your key may not call the model {missing[0]}.")


def _check_budget(own: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    same = all(wanted[name] == own[name] for name in ("counts", "window"))
    if not same or wanted["limit"] > own["limit"]:
        raise ForbiddenError(
            f"The budget must count {own['counts']} of a {own['window']}, and at most as many as "
            "that of your key."
        )
