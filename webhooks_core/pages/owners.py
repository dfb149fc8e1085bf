"""Who looks at the pages, what they may do, and what is theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webhooks_core import profiles
from webhooks_core.endpoints import may_be_internal
from webhooks_core.ids import is_id
from webhooks_core.models import Delivery, Endpoint, Event
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
PageView = Callable[..., HttpResponseBase]
INTERNAL = (
    "This endpoint may lie in an internal network: only operators see what it answered."
)
NOT_ALLOWED = "You may not see what the endpoint answered."


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

    def hidden_response(self, endpoint: Endpoint) -> str:
        """Return why the person does not see what a receiver answered; "" if the person does."""
        if may_be_internal(endpoint):
            return INTERNAL
        return "" if self.may(Capability.VIEW_PAYLOAD) else NOT_ALLOWED

    def endpoint(self, public_id: str) -> Endpoint:
        """Return one of the owner's endpoints. Raises Http404 for all others."""
        try:
            return self.subscriptions.find(public_id)
        except NotFoundError as error:
            raise Http404 from error

    def events(self) -> QuerySet[Event]:
        """Return the owner's stored events, newest first."""
        own = Event.objects.filter(
            profile=self.profile.name, owner=self.subscriptions.owner
        )
        return own.order_by("-pk")

    def event(self, public_id: str) -> Event | None:
        """Return one of the owner's stored events; None for all others."""
        # No query for what cannot be an id: PostgreSQL refuses a NUL.
        if not is_id(public_id, self.profile.event_prefix):
            return None
        return self.events().filter(public_id=public_id).first()

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
    # What an endpoint of the product has besides its URL and event types: description, active,
    # filter.
    extra_settings: Sequence[str] = ()
    # True where pages may be framed: a click that a foreign page has borrowed types no word.
    asks_for_words: bool = False

    def serve(self, view: PageView) -> PageView:
        """Return a view as its address serves it."""
        return view

    def context(self, owner: Owner) -> Mapping[str, Any]:
        """Return what `base_template` needs besides the user."""
        return {}

    @abstractmethod
    def enter(self, request: HttpRequest) -> Owner | HttpResponse:
        """Return whose pages a request may see, or what asks for a login."""

    @abstractmethod
    def confirm(self, request: HttpRequest, address: str) -> HttpResponse | None:
        """Return what asks for the password again and then leads to `address`; None if recent."""

    @abstractmethod
    def check_rate(self, request: HttpRequest, action: str) -> None:
        """Count an action: create, test, resend or replay. Raises TooManyRequestsError."""
