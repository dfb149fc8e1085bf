"""Portal links: made, opened once, revoked. Who has opened one has a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from gateway.models import PortalLink
from webhooks_core.ids import is_id, public_id
from webhooks_core.models import bearer
from webhooks_core.pages.base import Capability

ID_PREFIX = "prt_"
LINK_PREFIX, SESSION_PREFIX = "gw_portal_", "gw_session_"
DEFAULT_S = 3600
SESSION_FOR = timedelta(hours=12)
# By then each link has expired, and each session.
KEPT_DAYS = 30
CAPABILITIES = [each.value for each in Capability]


@dataclass(frozen=True, slots=True)
class Created:
    """A new link and its token, which is not stored."""

    link: PortalLink
    token: str

    @property
    def url(self) -> str:
        return f"{settings.BASE_URL}/portal/open/{self.token}"


def create(
    *,
    tenant: str,
    principal: str,
    key_id: int | None = None,
    capabilities: Sequence[str],
    expires_in: int = DEFAULT_S,
    actor: str = "",
) -> Created:
    """Create a link that is valid for `expires_in` seconds.

    `actor` is named in the log of changes; without one, the principal is. The revocation of the
    key `key_id` ends the link.
    """
    token, now = bearer.make(LINK_PREFIX), timezone.now()
    link = PortalLink.objects.create(
        public_id=public_id(ID_PREFIX),
        tenant=tenant,
        principal=principal,
        key_id=key_id,
        actor=actor or principal,
        capabilities=[each for each in CAPABILITIES if each in capabilities],
        digest=bearer.digest(token),
        created_at=now,
        expires_at=now + timedelta(seconds=expires_in),
    )
    return Created(link, token)


def of_tenant(tenant: str) -> QuerySet[PortalLink]:
    """Return the links of a tenant, newest first."""
    return _with_key().filter(tenant=tenant).order_by("-pk")


def _with_key() -> QuerySet[PortalLink]:
    """Return all links with the keys that made them: state() asks whether these are revoked."""
    return PortalLink.objects.select_related("key")


def find(tenant: str, link_id: str) -> PortalLink | None:
    """Return a link of a tenant by its id; None for all others."""
    if not is_id(link_id, ID_PREFIX):
        return None
    return of_tenant(tenant).filter(public_id=link_id).first()


def by_token(token: str) -> PortalLink | None:
    """Return the link that a token is for, whatever its state."""
    if not bearer.is_well_formed(token, LINK_PREFIX):
        return None
    return _with_key().filter(digest=bearer.digest(token)).first()


def by_session(token: str) -> PortalLink | None:
    """Return the link whose session a token is for, whatever its state."""
    if not bearer.is_well_formed(token, SESSION_PREFIX):
        return None
    return _with_key().filter(session_digest=bearer.digest(token)).first()


def open_once(link: PortalLink) -> str | None:
    """Use a link up; return the token of its session, or None if it cannot be opened (any more)."""
    token, now = bearer.make(SESSION_PREFIX), timezone.now()
    if link.state(now) != PortalLink.State.UNUSED:  # also if its key was revoked
        return None
    unused = PortalLink.objects.filter(
        pk=link.pk, opened_at=None, revoked_at=None, expires_at__gt=now
    )
    is_opened = unused.update(
        opened_at=now,
        session_digest=bearer.digest(token),
        session_expires_at=now + SESSION_FOR,
    )
    return token if is_opened else None


def revoke(links: QuerySet[PortalLink], now: datetime) -> int:
    """Revoke links and their sessions; return how many were neither expired nor revoked."""
    is_unused = Q(opened_at=None, expires_at__gt=now)
    is_open = Q(session_expires_at__gt=now)
    live = links.filter(is_unused | is_open, revoked_at=None)
    return live.order_by().update(revoked_at=now)
