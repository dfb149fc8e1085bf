"""The subscriptions of a caller over HTTP: each route is a use case, and one line of what it answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from webhooks_core.api import shapes
from webhooks_core.api.subscriptions import SubscriptionService
from webhooks_core.models import Endpoint
from webhooks_core.owners import repairs, resending
from webhooks_core.owners.deliveries import State
from webhooks_core.owners.details import details_of
from webhooks_core.owners.resending import Selection
from webhooks_core.web.views import ProductViewSet, route

ONE_DELIVERY = "deliveries/<str:delivery_id>"


class SubscriptionViewSet(ProductViewSet):
    """The subscriptions of a caller. A product says who that is, and the routes of its contract.

    Its serializer has the `columns` that its fields read.
    """

    lookup_field = "public_id"
    delivery_shape: ClassVar[type[BaseSerializer[Any]]]
    details_shape: ClassVar[type[BaseSerializer[Any]]]
    states: ClassVar[Mapping[str, State]]  # by the names of the product's statuses
    patch_is_partial = True

    @property
    @abstractmethod
    def subscriptions(self) -> SubscriptionService:
        """Return the use cases for the caller."""

    @property
    def public_id(self) -> str:
        return str(self.kwargs[self.lookup_url_kwarg or ""])

    def get_object(self) -> Endpoint:
        return self.subscriptions.find(self.public_id)

    def found(self) -> Endpoint:
        """Return the subscription of a route beyond the contract. Raises 404, then 400."""
        subscription = self.subscriptions.find(self.public_id)
        self.read_query()
        return subscription

    @classmethod
    @cache
    def list_shape(cls) -> Any:
        """Return one serializer for all lists: a new one copies its fields first."""
        shape: Any = cls.serializer_class
        return shape()

    def list(self, request: Request, **_: str) -> Response:
        shape = self.list_shape()
        rows = self.subscriptions.listed(shape.columns)
        return Response({"items": list(map(shape.to_representation, rows))})

    def create(self, request: Request, **_: str) -> Response:
        fields = self.read_body().validated_data
        return self.respond(self.subscriptions.create(**fields))

    def partial_update(self, request: Request, **_: str) -> Response:
        subscription, shape = self.get_object(), self.route.request
        assert shape is not None  # noqa: S101 - each product declares one
        read = shape(subscription, data=self.get_body(), partial=self.patch_is_partial)
        read.is_valid(raise_exception=True)
        changed = self.subscriptions.update(subscription, **read.validated_data)
        return self.respond(changed)

    def destroy(self, request: Request, **_: str) -> Response:
        self.subscriptions.delete(self.get_object())
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def test(self, request: Request, **_: str) -> Response:
        event = self.subscriptions.send_test(self.public_id)
        queued = {"event_id": event.public_id, "queued": True}
        return Response(queued, self.route.statuses[0])

    @action(detail=True)
    def deliveries(self, request: Request, **_: str) -> Response:
        """List one page by its number; other filters may narrow it."""
        subscription = self.get_object()
        query = self.read_query()
        if status := query.pop("status", None):
            query["state"] = self.states[status]
        rows = self.subscriptions.deliveries(subscription, **query)
        return Response({"items": self.delivery_shape(rows, many=True).data})

    @route(
        summary="Show a delivery in full: event, attempts, what was answered",
        name="describe_delivery",
        response="details_shape",
        errors=(400, 410),
    )
    @action(detail=True, url_path=ONE_DELIVERY)
    def delivery(self, request: Request, delivery_id: str, **_: str) -> Response:
        delivery = self.subscriptions.delivery(delivery_id, self.found())
        return self.respond(details_of(delivery))

    @route(
        summary="Send the event of a delivery again, before all that waits",
        name="resend_delivery",
        response=shapes.AcceptedShape,
        status=202,
        errors=(400, 409, 410),
        throttle="resend",
    )
    @action(detail=True, methods=["post"], url_path=f"{ONE_DELIVERY}/resend")
    def resend_one(self, request: Request, delivery_id: str, **_: str) -> Response:
        subscriptions = self.subscriptions
        delivery = subscriptions.delivery(delivery_id, self.found())
        return self.respond(resending.resend(delivery, by=subscriptions.by))

    @route(
        summary="Send what failed, or what was missed, in a time again; or count it",
        request=shapes.ResendRequest,
        response=shapes.ResendResult,
        status=(202, 200),
        errors=(409,),
        throttle="resend",
    )
    @action(detail=True, methods=["post"])
    def resend(self, request: Request, **_: str) -> Response:
        subscription = self.found()
        asked = self.read_body().validated_data
        is_dry_run, status = asked.pop("dry_run"), Selection(asked.pop("status"))
        if is_dry_run:
            count = resending.count(subscription, status, **asked)
        else:
            by = self.subscriptions.by
            count = resending.resend_since(subscription, status, **asked, by=by)
        return Response({"count": count}, 200 if is_dry_run else 202)

    @route(
        summary="Make a new signing secret; it is returned only here",
        name="rotate_secret",
        request=shapes.RotationRequest,
        response=shapes.RotatedShape,
        errors=(409,),
    )
    @action(detail=True, methods=["post"], url_path="secret/rotate")
    def rotate(self, request: Request, **_: str) -> Response:
        subscription, overlap = self.found(), self.read_body().overlap
        by = self.subscriptions.by
        return self.respond(repairs.rotate(subscription, overlap=overlap, by=by))

    @route(
        summary="Show the additional headers of deliveries",
        name="settings",
        response=shapes.SettingsShape,
        errors=(400, 409),
    )
    @action(detail=True, url_path="settings")
    def endpoint_settings(self, request: Request, **_: str) -> Response:
        return self.respond(self.subscriptions.settings(self.found()))

    @route(
        summary="Set the additional headers of deliveries",
        name="update_settings",
        request=shapes.SettingsRequest,
        response=shapes.SettingsShape,
        errors=(409,),
    )
    @endpoint_settings.mapping.patch
    def change_settings(self, request: Request, **_: str) -> Response:
        subscription = self.found()
        changed = self.read_body().validated_data
        return self.respond(self.subscriptions.set_headers(subscription, **changed))
