"""Subscriptions over HTTP: the use cases and the viewset that the products share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from webhooks_core import endpoints, profiles, publishing
from webhooks_core.endpoints import Created, QuotaExceededError
from webhooks_core.ids import is_id
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.owners.changes import Actor
from webhooks_core.profiles import PingEvent
from webhooks_core.web.errors import (
    BadRequestError,
    NotFoundError,
    TooManyRequestsError,
)
from webhooks_core.web.pages import PageQuery, read_query
from webhooks_core.web.views import ProductViewSet

DELIVERY_COLUMNS = (
    "public_id",
    "event__public_id",
    "event__type",
    "status",
    "attempts",
    "last_error",
    "next_attempt_at",
    "delivered_at",
    "created_at",
)


class SubscriptionService(ABC):
    """The use cases of an owner's subscriptions. A subclass has what differs in a product."""

    profile: ClassVar[str]
    quota_error: ClassVar[str]  # with `{quota}`

    def __init__(self, owner: str, *, by: Actor) -> None:
        self.owner, self.by = owner, by

    def all(self) -> QuerySet[Endpoint]:
        """Return the owner's subscriptions, newest first."""
        return Endpoint.objects.of(self.profile, self.owner).order_by("-id")

    def listed(self, columns: Iterable[str]) -> list[Endpoint]:
        """Return the owner's subscriptions, newest first, with some of their columns."""
        return Endpoint.objects.read_list(self.profile, self.owner, columns=columns)

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
        return self.insert(url=url, event_types=event_types, **fields)

    def insert(
        self, *, url: str, event_types: list[str] | None = None, **fields: Any
    ) -> Created:
        """Create a subscription whose URL was checked. Raises 429 for the quota."""
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
    def ping(self, subscription: Endpoint) -> PingEvent:
        """Return the test event, or raise an error of the product: none is accepted."""

    def send_test(self, public_id: str) -> Event:
        """Queue a test event for this subscription alone, whatever its event types. Raises 404.

        The event is stored in any case; a delivery only if the subscription receives events.
        """
        with transaction.atomic():
            # Locked: what fails deliveries comes before the event, or fails this one.
            current = self.find(public_id, lock=True)
            ping = self.ping(current)
            return publishing.publish_test(
                current, event_type=ping.type, data=ping.data, **ping.metadata
            )

    def deliveries(
        self, subscription: Endpoint, *, page: int, page_size: int
    ) -> list[dict[str, Any]]:
        """Return one page of a subscription's deliveries as rows, newest first."""
        rows = Delivery.objects.page(subscription, number=page, size=page_size)
        endpoint_id = {"endpoint_id": subscription.public_id}
        return [row | endpoint_id for row in rows.values(*DELIVERY_COLUMNS)]


class SubscriptionViewSet(ProductViewSet):
    """The subscriptions of a caller. A product says who that is, and how they are shown."""

    lookup_field = "public_id"
    # By action; without an entry, `serializer_class`.
    request_serializers: Mapping[str, type[BaseSerializer[Any]]] = {}
    response_serializers: Mapping[str, type[BaseSerializer[Any]]]
    list_columns: Sequence[str]  # what the serializer of a list reads
    patch_is_partial = True
    test_status = 200

    @property
    @abstractmethod
    def subscriptions(self) -> SubscriptionService:
        """Return the use cases for the caller."""

    def get_serializer_class(self) -> type[BaseSerializer[Any]]:
        return (
            self.request_serializers.get(self.action) or super().get_serializer_class()
        )

    def get_object(self) -> Endpoint:
        return self.subscriptions.find(self.public_id)

    @property
    def public_id(self) -> str:
        return str(self.kwargs[self.lookup_url_kwarg or ""])

    def respond(self, result: Any, status: int = 200) -> Response:
        """Return the response of an action that has a serializer for it."""
        return Response(self.response_serializers[self.action](result).data, status)

    def list(self, request: Request, **_: str) -> Response:
        rows = self.paginate_queryset(self.subscriptions.listed(self.list_columns))
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    @extend_schema(summary="Create a subscription; its secret is returned only here")
    def create(self, request: Request, **_: str) -> Response:
        return self.respond(self.perform_create(self.get_valid_serializer()), 201)

    def perform_create(self, serializer: BaseSerializer[Any]) -> Created:
        return self.subscriptions.create(**serializer.validated_data)

    def partial_update(self, request: Request, **_: str) -> Response:
        subscription = self.get_object()
        serializer = self.get_valid_serializer(
            subscription, partial=self.patch_is_partial
        )
        return self.respond(
            self.subscriptions.update(subscription, **serializer.validated_data)
        )

    def destroy(self, request: Request, **_: str) -> Response:
        self.subscriptions.delete(self.get_object())
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def test(self, request: Request, **_: str) -> Response:
        event = self.subscriptions.send_test(self.public_id)
        queued = {"event_id": event.public_id, "queued": True}
        return Response(queued, status=self.test_status)

    @extend_schema(
        summary="List what was sent to a subscription, newest first",
        parameters=[PageQuery],
    )
    @action(detail=True)
    def deliveries(self, request: Request, **_: str) -> Response:
        return self.list_deliveries(request)

    def list_deliveries(self, request: Request) -> Response:
        """List one page by its number."""
        subscription = self.get_object()
        page = read_query(PageQuery(), request)
        rows = self.subscriptions.deliveries(subscription, **page)
        serializer = self.response_serializers["deliveries"](rows, many=True)
        return self.get_paginated_response(serializer.data)
