"""Who looks at the pages, what they may do, and what is theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.http import Http404, HttpRequest, HttpResponse

from webhooks_core import profiles
from webhooks_core.ids import is_id
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners.changes import Actor
from webhooks_core.profiles import WebhookProfile
from webhooks_core.web.errors import NotFoundError
from webhooks_core.web.subscriptions import SubscriptionService


class Capability(StrEnum):
    VIEW = "view"
    VIEW_PAYLOAD = "view_payload"  # bodies, and what a receiver answered
    VIEW_SECRET = "view_secret"  # noqa: S105 - a name
    MANAGE = "manage"
    SEND = "send"  # tests, resends, replays


EVERYTHING = frozenset(Capability)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of webhooks, and the person who acts for it."""

    subscriptions: SubscriptionService
    capabilities: frozenset[Capability] = EVERYTHING

    @property
    def profile(self) -> WebhookProfile:
        return profiles.get(self.subscriptions.profile)

    @property
    def by(self) -> Actor:
        """The person, for the list of changes."""
        return self.subscriptions.by

    def may(self, capability: Capability) -> bool:
        return capability in self.capabilities

    def endpoint(self, public_id: str) -> Endpoint:
        """Return one of the owner's endpoints. Raises Http404 for all others."""
        try:
            return self.subscriptions.find(public_id)
        except NotFoundError as error:
            raise Http404 from error

    def delivery(self, public_id: str) -> Delivery:
        """Return a delivery to one of the owner's endpoints. Raises Http404 for all others."""
        return self.deliveries([public_id])[0]

    def deliveries(self, public_ids: Collection[str]) -> list[Delivery]:
        """As `delivery`, for several: by the age of their events. One query."""
        wanted = set(public_ids)
        if not all(is_id(each, self.profile.delivery_prefix) for each in wanted):
            raise Http404
        own = Delivery.objects.select_related("event", "endpoint").filter(
            endpoint__profile=self.profile.name,
            endpoint__owner=self.subscriptions.owner,
            endpoint__deleted_at=None,
        )
        rows = list(own.filter(public_id__in=wanted).order_by("event", "pk"))
        if len(rows) < len(wanted):
            raise Http404
        return rows


class Door(ABC):
    """How a product admits people. `base_template` frames each page, whose block is `page`."""

    base_template: str
    # What an endpoint of the product has besides its URL and event types: description, active.
    extra_settings: Sequence[str] = ()

    @abstractmethod
    def enter(self, request: HttpRequest) -> Owner | HttpResponse:
        """Return whose pages a request may see, or what asks for a login."""

    @abstractmethod
    def confirm(self, request: HttpRequest, address: str) -> HttpResponse | None:
        """Return what asks for the password again and then leads to `address`; None if recent."""

    @abstractmethod
    def check_rate(self, request: HttpRequest, action: str) -> None:
        """Count an action: create, test, resend or replay. Raises TooManyRequestsError."""
