"""What owners ask of their webhooks over HTTP: the actions that the products share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.db.models import Model, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.throttling import BaseThrottle

from webhooks_core import profiles
from webhooks_core.models import Delivery
from webhooks_core.owners import cursors, event_search
from webhooks_core.owners.delivery_details import details_of, row_of
from webhooks_core.owners.delivery_search import State
from webhooks_core.web import owner_requests as requests
from webhooks_core.web import owner_serializers as shapes
from webhooks_core.web.errors import BadRequestError
from webhooks_core.web.owner_examples import CHANGE
from webhooks_core.web.pages import read_query
from webhooks_core.web.repairs import Repairs
from webhooks_core.web.subscriptions import SubscriptionService, SubscriptionViewSet

# Any of these makes a search of the contract's list.
SEARCHES = frozenset(
    {
        *("status", "event_type", "event_id", "since", "until"),
        *("status_class", "cursor"),
    }
)
CONFLICTING = (
    *("resend", "retry_now", "cancel", "replay", "cancel_replay", "rotate"),
    *("endpoint_settings", "change_settings"),
)
Row = TypeVar("Row", bound=Model)

ONE_DELIVERY = "deliveries/<str:delivery_id>"
ONE_REPLAY = "replays/<str:replay_id>"


def by_action(
    throttle: Callable[[str], BaseThrottle],
) -> dict[str, Callable[[], BaseThrottle]]:
    """Return the throttles of OwnerViewSet; `throttle` makes that of a rate."""
    names = ("create", "test", "resend", "replay")
    own: dict[str, Callable[[], BaseThrottle]]
    own = {name: partial(throttle, name) for name in names}
    return own | dict.fromkeys(("retry_now", "cancel"), own["resend"])


def page_of(items: BaseSerializer[Any], cursor: str) -> Response:
    return Response({"items": items.data, "next_cursor": cursor})


class OwnerViewSet(SubscriptionViewSet):
    """The subscriptions of a caller, and what it asks of each besides the contract's routes."""

    states: ClassVar[Mapping[str, State]]
    strict_actions: Sequence[str] = (
        *("delivery", "resend", "retry_now", "cancel", "replay", "replay_state"),
        *("cancel_replay", "rotate", "endpoint_settings", "change_settings"),
        *("why", "state", "changes", "types"),
    )
    queries: ClassVar[Mapping[str, type[requests.StrictQuery]]] = {
        "why": requests.WhyQuery,
        "changes": requests.CursorQuery,
    }
    query: Mapping[str, Any]
    gone_actions: Sequence[str] = ("delivery", "resend", "retry_now", "cancel")

    @property
    def repairs(self) -> Repairs:
        """Return the use cases of the subscription. Raises 404, then 400 for the query."""
        subscription = self.subscriptions.find(self.public_id)
        query = self.queries.get(self.action, requests.NoQuery)
        if self.action in self.strict_actions:
            self.query = read_query(query(), self.request)
        return Repairs(subscription, by=self.subscriptions.by)

    def list_deliveries(self, request: Request) -> Response:
        """List a page by number, as the contract says, or what fits filters, by a cursor."""
        if SEARCHES.isdisjoint(request.query_params):
            return super().list_deliveries(request)
        repairs = self.repairs
        if "page" in request.query_params:
            raise BadRequestError("page and filters exclude each other: use cursor.")
        query = requests.search_query(self.states)()
        data = read_query(query, request)
        found = repairs.search(
            query.wanted(self.states),
            cursor=data.get("cursor", ""),
            size=data["page_size"],
        )
        rows = [row_of(item.delivery) for item in found.items]
        return page_of(
            self.response_serializers[self.action](rows, many=True), found.cursor
        )

    @extend_schema(
        summary="Show a delivery in full: event, attempts, what was answered"
    )
    @action(detail=True, url_path=ONE_DELIVERY)
    def delivery(self, request: Request, delivery_id: str, **_: str) -> Response:
        return self.respond(details_of(self.repairs.delivery(delivery_id)))

    @extend_schema(
        summary="Send the event of a delivery again, before all that waits",
        request=None,
        responses={202: shapes.AcceptedSerializer},
    )
    @action(detail=True, methods=["post"], url_path=f"{ONE_DELIVERY}/resend")
    def resend(self, request: Request, delivery_id: str, **_: str) -> Response:
        return accepted(self.repairs.resend(delivery_id))

    @extend_schema(
        summary="Make a pending delivery the next request of its subscription",
        request=None,
        responses={202: shapes.AcceptedSerializer},
    )
    @action(detail=True, methods=["post"], url_path=f"{ONE_DELIVERY}/retry-now")
    def retry_now(self, request: Request, delivery_id: str, **_: str) -> Response:
        return accepted(self.repairs.retry_now(delivery_id))

    @extend_schema(
        summary="Fail a pending delivery for good",
        request=None,
        responses={202: shapes.AcceptedSerializer},
    )
    @action(detail=True, methods=["post"], url_path=f"{ONE_DELIVERY}/cancel")
    def cancel(self, request: Request, delivery_id: str, **_: str) -> Response:
        return accepted(self.repairs.cancel(delivery_id))

    @extend_schema(
        summary="Send what failed, or what was skipped, again; or count it",
        request=requests.ReplayRequestSerializer,
        responses={202: shapes.ReplaySerializer, 200: shapes.PreviewSerializer},
    )
    @action(detail=True, methods=["post"])
    def replay(self, request: Request, **_: str) -> Response:
        repairs = self.repairs
        asked = self.read_body(requests.ReplayRequestSerializer)
        self.check_types(asked.validated_data.get("event_types", ()))
        if asked.validated_data["dry_run"]:
            counted = repairs.preview(asked.selection())
            return Response(shapes.PreviewSerializer(counted).data)
        job = repairs.start_replay(asked.selection())
        return Response(shapes.ReplaySerializer(job).data, 202)

    @extend_schema(
        summary="Show how far a replay is", responses=shapes.ReplaySerializer
    )
    @action(detail=True, url_path=ONE_REPLAY)
    def replay_state(self, request: Request, replay_id: str, **_: str) -> Response:
        return Response(shapes.ReplaySerializer(self.repairs.replay(replay_id)).data)

    @extend_schema(
        summary="Send nothing more of a replay; what is queued is sent",
        request=None,
        responses={202: shapes.ReplaySerializer},
    )
    @action(detail=True, methods=["post"], url_path=f"{ONE_REPLAY}/cancel")
    def cancel_replay(self, request: Request, replay_id: str, **_: str) -> Response:
        job = self.repairs.cancel_replay(replay_id)
        return Response(shapes.ReplaySerializer(job).data, 202)

    @extend_schema(
        summary="Make a new signing secret; it is returned only here",
        request=requests.RotationRequestSerializer,
        responses=shapes.RotatedSerializer,
    )
    @action(detail=True, methods=["post"], url_path="secret/rotate")
    def rotate(self, request: Request, **_: str) -> Response:
        repairs = self.repairs
        data = self.read_body(requests.RotationRequestSerializer).validated_data
        seconds = data.get("overlap_s")
        overlap = None if seconds is None else timedelta(seconds=seconds)
        rotated = repairs.rotate_secret(overlap)
        return Response(shapes.RotatedSerializer(rotated).data)

    @extend_schema(
        summary="Show the additional headers of deliveries",
        responses=shapes.SettingsSerializer,
    )
    @action(detail=True, url_path="settings")
    def endpoint_settings(self, request: Request, **_: str) -> Response:
        return Response(shapes.SettingsSerializer(self.repairs.settings()).data)

    @extend_schema(
        summary="Set the additional headers of deliveries",
        request=requests.SettingsRequestSerializer,
        responses=shapes.SettingsSerializer,
    )
    @endpoint_settings.mapping.patch
    def change_settings(self, request: Request, **_: str) -> Response:
        repairs = self.repairs
        data = self.read_body(requests.SettingsRequestSerializer).validated_data
        return Response(shapes.SettingsSerializer(repairs.set_headers(**data)).data)

    @extend_schema(
        summary="Say why an event did or did not arrive",
        parameters=[requests.WhyQuery],
        responses=shapes.WhySerializer,
    )
    @action(detail=True)
    def why(self, request: Request, **_: str) -> Response:
        repairs = self.repairs
        reason = repairs.why(self.query["event_id"])
        return Response(shapes.WhySerializer(reason).data)

    @extend_schema(
        summary="Say since when a subscription fails, why, and what to do",
        responses=shapes.StateSerializer,
    )
    @action(detail=True)
    def state(self, request: Request, **_: str) -> Response:
        quota = profiles.get(self.subscriptions.profile).quota
        state = self.repairs.state()
        return Response(shapes.StateSerializer(state, context={"quota": quota}).data)

    @extend_schema(
        summary="List who changed what, newest first",
        parameters=[requests.CursorQuery],
        responses=shapes.page("ChangePage", shapes.ChangeSerializer, CHANGE),
    )
    @action(detail=True)
    def changes(self, request: Request, **_: str) -> Response:
        rows, cursor = newest(self.repairs.changes(), self.query)
        return page_of(shapes.ChangeSerializer(rows, many=True), cursor)

    def check_types(self, names: Sequence[str]) -> None:
        """Raise 400 for an event type that the product does not have."""
        known = profiles.get(self.subscriptions.profile).event_types
        if unknown := [name for name in names if name not in known]:
            raise BadRequestError(
                f"event_types: unknown event type {unknown[0]}; known are {', '.join(known)}."
            )


def event_types(profile: str, request: Request) -> Response:
    """Answer with the event types of a product, as `shapes.EVENT_TYPES` describes it."""
    read_query(requests.NoQuery(), request)
    kinds = profiles.get(profile).event_types.values()
    return Response({"items": shapes.EventTypeSerializer(kinds, many=True).data})


def stored_events(service: SubscriptionService, request: Request) -> Response:
    """Answer with a page of an owner's events, as `shapes.STORED_EVENTS` describes it."""
    query = read_query(requests.StoredEventQuery(), request)
    found, cursor = event_search.search(
        profile=service.profile,
        owner=service.owner,
        event_types=query.get("event_type", ()),
        since=query.get("since"),
        until=query.get("until"),
        before=position(query),
        size=query["page_size"],
    )
    return page_of(shapes.StoredEventSerializer(found, many=True), cursor)


def position(query: Mapping[str, Any]) -> int | None:
    """Return the id behind which a page begins. Raises 400."""
    try:
        return cursors.position(query.get("cursor", ""))
    except ValueError as error:
        raise BadRequestError(f"{error}") from error


def newest(rows: QuerySet[Row], query: Mapping[str, Any]) -> tuple[list[Row], str]:
    """Return a page of rows, newest first, and the cursor behind it. Raises 400."""
    return cursors.page(rows, before=position(query), size=query["page_size"])


def accepted(delivery: Delivery) -> Response:
    return Response(shapes.AcceptedSerializer(delivery).data, 202)
