"""The use cases of an owner's subscriptions, with the errors of an API. REST, MCP and pages call them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, ClassVar

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from webhooks_core import endpoints, profiles, publishing
from webhooks_core.changes import Actor
from webhooks_core.conf import webhook_settings
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.errors import (
    BadRequestError,
    ConflictError,
    GoneError,
    NotFoundError,
    TooManyRequestsError,
)
from webhooks_core.ids import created_at, is_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network.custom_headers import HeaderError
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.owners import deliveries, details, repairs
from webhooks_core.owners.deliveries import State
from webhooks_core.profiles import NewEvent
from webhooks_core.secrets import HIDDEN, SecretUnreadableError


class SubscriptionService(ABC):
    """The use cases of an owner's subscriptions. A subclass has what differs in a product."""

    profile: ClassVar[str]
    quota_error: ClassVar[str]  # with `{quota}`

    def __init__(self, owner: str, *, by: str) -> None:
        self.owner, self.by = owner, Actor("owner", by)

    def all(self) -> QuerySet[Endpoint]:
        """Return the owner's subscriptions, newest first."""
        return Endpoint.objects.of(self.profile, self.owner).order_by("-id")

    def listed(self, columns: Iterable[str]) -> list[Endpoint]:
        """Return the owner's subscriptions, newest first, with some of their columns.

        As SQL: the ORM takes four times as long to compose it as the database to run it.
        """
        names = ", ".join(map(connection.ops.quote_name, ("id", *columns)))
        sql = (
            f"SELECT {names} FROM webhooks_core_endpoint"  # noqa: S608 - columns of the model
            " WHERE profile = %s AND owner = %s AND deleted_at IS NULL ORDER BY id DESC"
        )
        return list(Endpoint.objects.raw(sql, [self.profile, self.owner]))

    def find(self, public_id: str, *, lock: bool = False) -> Endpoint:
        """Return a subscription of the owner. Raises 404, also for another owner's."""
        rows = self.all().select_for_update() if lock else self.all()
        # No query for what cannot be an id: PostgreSQL refuses a NUL.
        if is_id(public_id, profiles.get(self.profile).endpoint_prefix):
            subscription = rows.filter(public_id=public_id).first()
            if subscription is not None:
                return subscription
        raise NotFoundError("There is no such subscription.")

    def check_url(self, url: str, *, trusted: bool = False) -> None:
        """Raise 400 for a URL that is refused. Queries the resolver: up to 2 s."""
        try:
            endpoints.check_url(self.profile, url, trusted=trusted)
        except UrlRefusedError as error:
            raise BadRequestError(f"{error}.") from error

    def creating(self) -> AbstractContextManager[None]:
        """Return what the owner's state must be, and stay, while a subscription is created."""
        return nullcontext()

    def create(
        self, *, url: str, event_types: list[str] | None = None, **fields: Any
    ) -> Created:
        """Create a subscription. Raises 400 for its URL, 429 for the quota."""
        self.check_url(url)
        try:
            with self.creating():
                return endpoints.create(
                    profile=self.profile,
                    owner=self.owner,
                    url=url,
                    event_types=event_types or [],
                    by=self.by,
                    **fields,
                )
        except QuotaExceededError as error:
            quota = profiles.get(self.profile).quota
            raise TooManyRequestsError(self.quota_error.format(quota=quota)) from error

    def changes(self, current: Endpoint, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields to write, of those that a request has."""
        return current.differing(fields)

    def update(self, subscription: Endpoint, **fields: Any) -> Endpoint:
        """Change fields; return the subscription.

        Raises 400 for a new URL, and 404 if the subscription was deleted meanwhile.
        """
        url = fields.get("url")
        if url and url != subscription.url:
            self.check_url(url, trusted=subscription.trusted)
        with transaction.atomic():
            current = self.find(subscription.public_id, lock=True)
            changes = self.changes(current, fields)
            if not changes:
                return current
            return endpoints.update(current, by=self.by, **changes)

    def delete(self, subscription: Endpoint) -> None:
        """Delete a subscription. Raises 404 when another call did so first."""
        if not endpoints.delete(subscription, by=self.by):
            raise NotFoundError("There is no such subscription.")

    @abstractmethod
    def ping(self, subscription: Endpoint) -> NewEvent:
        """Return the test event, or raise an error of the product: none is accepted."""

    def send_test(self, public_id: str) -> Event:
        """Queue a test event for this subscription alone, whatever its event types. Raises 404.

        The event is stored in any case; a delivery only if the subscription receives events.
        """
        with transaction.atomic():
            # Locked: what fails deliveries comes before the event, or fails this one.
            current = self.find(public_id, lock=True)
            return publishing.publish_test(current, self.ping(current))

    def deliveries(
        self,
        subscription: Endpoint,
        *,
        page: int,
        page_size: int,
        state: State | None = None,
        event_id: str = "",
    ) -> QuerySet[Delivery]:
        """Return one page of a subscription's deliveries, newest first."""
        own = Delivery.objects.filter(endpoint=subscription)
        own = deliveries.narrowed(own, state=state, event_id=event_id)
        rows = own.page(page, size=page_size)
        return rows.select_related("event", "endpoint").defer("event__body")

    def delivery(
        self, public_id: str, subscription: Endpoint | None = None
    ) -> Delivery:
        """Return a delivery, of one subscription or of any, with its event and endpoint.

        Raises 404, or 410 for one of before retention.
        """
        if not is_id(public_id, profiles.get(self.profile).delivery_prefix):
            raise NotFoundError("There is no such delivery.")
        owned = self.all().order_by()
        endpoints = owned.filter(pk=subscription.pk) if subscription else owned
        rows = Delivery.objects.select_related("event", "endpoint")
        own = rows.filter(endpoint__in=endpoints, public_id=public_id)
        if (delivery := own.first()) is not None:
            return delivery
        kept = timedelta(days=webhook_settings.RETENTION_DAYS)
        if created_at(public_id) < timezone.now() - kept:
            raise GoneError("Such an old delivery was removed with its event.")
        raise NotFoundError("There is no such delivery.")

    def settings(self, subscription: Endpoint) -> dict[str, Any]:
        """Return what is sent beside the contract's headers, masked. Raises 409 if the headers cannot be read."""
        current = Endpoint.objects.get(pk=subscription.pk)
        try:
            names = details.custom_names(current)
        except SecretUnreadableError as error:
            raise ConflictError(
                "The custom headers cannot be read: set them again."
            ) from error
        return {
            "custom_headers": dict.fromkeys(names, HIDDEN),
            "standard_headers": current.standard_headers,
        }

    def set_headers(
        self,
        subscription: Endpoint,
        *,
        custom_headers: Mapping[str, str] | None = None,
        standard_headers: bool | None = None,
    ) -> dict[str, Any]:
        """Change what is given; custom headers replace those before. Raises 400, 409."""
        repairs.check_not_declared(subscription)
        try:
            with transaction.atomic():
                if custom_headers is not None:
                    endpoints.set_custom_headers(
                        subscription, custom_headers, by=self.by
                    )
                if standard_headers is not None:
                    endpoints.set_standard_headers(
                        subscription, wanted=standard_headers, by=self.by
                    )
        except HeaderError as error:
            raise BadRequestError(f"custom_headers: {error}.") from error
        except ValueError as error:
            raise BadRequestError(f"standard_headers: {error}.") from error
        return self.settings(subscription)
