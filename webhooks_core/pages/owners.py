"""Who looks at the pages, what they may do, and what is theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from webhooks_core import profiles
from webhooks_core.api.subscriptions import SubscriptionService
from webhooks_core.changes import Actor
from webhooks_core.ids import is_id
from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import state
from webhooks_core.owners.state import EndpointState
from webhooks_core.profiles import WebhookProfile
from webhooks_core.targets import may_be_internal
from webhooks_core.web.errors import NotFoundError


class Capability(StrEnum):
    VIEW = "view"
    VIEW_SECRET = "view_secret"  # noqa: S105 - a name
    MANAGE = "manage"  # and send: tests, resends


EVERYTHING = frozenset(Capability)
PageView = Callable[..., HttpResponseBase]
INTERNAL = (
    "This endpoint may lie in an internal network: only operators see what it answered."
)


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
        """The person, for the log."""
        return self.subscriptions.by

    def may(self, capability: Capability) -> bool:
        return capability in self.capabilities

    def hidden_response(self, endpoint: Endpoint) -> str:
        """Return why an owner does not see what a receiver answered; "" if it does."""
        return INTERNAL if may_be_internal(endpoint) else ""

    def states(self, rows: Sequence[Endpoint]) -> dict[int, EndpointState]:
        """Return the states of endpoints by their keys, as the person may know them."""
        hidden = {row.pk for row in rows if self.hidden_response(row)}
        return state.describe_all(rows, hidden=hidden)

    def endpoint(self, public_id: str) -> Endpoint:
        """Return one of the owner's endpoints. Raises Http404 for all others."""
        try:
            return self.subscriptions.find(public_id)
        except NotFoundError as error:
            raise Http404 from error

    def delivery(self, public_id: str) -> Delivery:
        """Return a delivery to one of the owner's endpoints. Raises Http404 for all others."""
        # No query for what cannot be an id: PostgreSQL refuses a NUL.
        if is_id(public_id, self.profile.delivery_prefix):
            rows = Delivery.objects.select_related("event", "endpoint")
            own = rows.filter(endpoint__in=self.subscriptions.all().order_by())
            if (delivery := own.filter(public_id=public_id).first()) is not None:
                return delivery
        raise Http404


class Door(ABC):
    """How a product admits people. `base_template` frames each page, whose block is `page`."""

    base_template: str
    # What an endpoint of the product has besides its URL and event types: description, active.
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
        """Count an action: create, test or resend. Raises TooManyRequestsError."""
