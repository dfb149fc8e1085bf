"""The list of an owner's deliveries: chips, an event's id, older ones, and resending several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils import timezone

from webhooks_core.models import Delivery, Endpoint
from webhooks_core.owners import delivery_search, replays
from webhooks_core.owners.delivery_search import (
    DeliveryFilter,
    Found,
    State,
    StatusClass,
)
from webhooks_core.owners.replays import NotSubscribedError
from webhooks_core.pages import wording
from webhooks_core.pages.base import OwnerView, RefusedError
from webhooks_core.pages.forms import offered
from webhooks_core.pages.owners import Capability

PAGE_SIZE = 25
RESENT_AT_ONCE = 100
DEFAULT_STATE = State.FAILED_UNDELIVERED.value
# What each choice of a state means; a text for its chip.
OPEN = "open"
STATES = {
    DEFAULT_STATE: "Failed, not yet delivered",
    OPEN: "Failed or waiting",
    State.FAILED.value: "Failed",
    State.PENDING.value: "Waiting",
    State.DELIVERED.value: "Delivered",
    "all": "All",
}
HOURS = {"1": "1 hour", "24": "24 hours", "168": "7 days", "": "Any time"}
ANSWERS = {
    "": "Any answer",
    StatusClass.SERVER_ERROR.value: "5xx",
    StatusClass.CLIENT_ERROR.value: "4xx",
    StatusClass.REDIRECT.value: "3xx",
    StatusClass.SUCCESS.value: "2xx",
    StatusClass.NONE.value: "No answer",
}


class Chip(NamedTuple):
    """A choice of a filter, and the query that makes it."""

    name: str
    query: str
    is_chosen: bool


def known(value: str, names: Mapping[str, str], default: str) -> str:
    """Return a value that has a name; the default for any other."""
    return value if value in names else default


def query_of(parts: Mapping[str, str]) -> str:
    """Return the query with the parts that are not empty."""
    return urlencode({name: value for name, value in parts.items() if value})


def chips(parts: Mapping[str, str], part: str, names: Mapping[str, str]) -> list[Chip]:
    """Return a choice for each value of a part of a query."""
    return [
        Chip(name, query_of({**parts, part: value}), value == parts.get(part, ""))
        for value, name in names.items()
    ]


class Row(NamedTuple):
    found: Found
    tone: str
    state: str
    result: str


class Search:
    """The filter of a request. What is unknown counts as absent: a link may be old."""

    def __init__(self, query: QueryDict, endpoints: Sequence[Endpoint]) -> None:
        self.event_id = query.get("event_id", "").strip()[:64]
        default = "all" if self.event_id else DEFAULT_STATE
        self.state = known(query.get("status", ""), STATES, default)
        self.hours = known(query.get("hours", ""), HOURS, "")
        self.answer = known(query.get("answer", ""), ANSWERS, "")
        self.event_type = query.get("type", "")
        self.cursor = query.get("cursor", "")
        by_id = {each.public_id: each for each in endpoints}
        self.endpoint = by_id.get(query.get("endpoint", ""))

    def filter(self, types: Sequence[str]) -> DeliveryFilter:
        meant = {"all": (), OPEN: (State.FAILED_UNDELIVERED, State.PENDING)}
        states = frozenset(
            meant[self.state] if self.state in meant else {State(self.state)}
        )
        since = timedelta(hours=int(self.hours)) if self.hours else None
        return DeliveryFilter(
            states=states,
            event_types=(self.event_type,) if self.event_type in types else (),
            event_id=self.event_id if self.event_id.isprintable() else "-",
            since=timezone.now() - since if since else None,
            status_class=StatusClass(self.answer) if self.answer else None,
        )

    @property
    def parts(self) -> dict[str, str]:
        """The parts of its query but the cursor."""
        return {
            "status": self.state,
            "hours": self.hours,
            "answer": self.answer,
            "type": self.event_type,
            "endpoint": self.endpoint.public_id if self.endpoint else "",
            "event_id": self.event_id,
        }


class Deliveries(OwnerView):
    """The deliveries of all endpoints; POST resends those that are selected, after a question."""

    acts_with = Capability.SEND
    refused_to = ("deliveries",)

    def get(self, request: HttpRequest) -> HttpResponse:
        endpoints = list(self.owner.subscriptions.all())
        types = [each.name for each in self.owner.profile.event_types.values()]
        search = Search(request.GET, endpoints)
        shown = self.owner.subscriptions.all()
        if search.endpoint:
            shown = shown.filter(pk=search.endpoint.pk)
        wanted = search.filter(types)
        try:
            page = delivery_search.search(
                shown, wanted, cursor=search.cursor, size=PAGE_SIZE
            )
        except ValueError:  # the cursor of an old link
            page = delivery_search.search(shown, wanted, size=PAGE_SIZE)
        parts = search.parts
        context = {
            "search": search,
            "rows": [_row(found) for found in page.items],
            "older": query_of(parts | {"cursor": page.cursor}) if page.cursor else "",
            "is_first": not search.cursor,
            "endpoints": endpoints,
            "types": [each.name for each in offered(self.owner.profile)],
            "states": chips(parts, "status", STATES),
            "hours": chips(parts, "hours", HOURS),
            "answers": chips(parts, "answer", ANSWERS),
        }
        return self.render("deliveries", context)

    def post(self, request: HttpRequest) -> HttpResponse:
        public_ids = request.POST.getlist("delivery")
        if not 0 < len(public_ids) <= RESENT_AT_ONCE:
            raise RefusedError(f"Select 1 to {RESENT_AT_ONCE} deliveries.")
        selected = self.owner.deliveries(public_ids)
        if request.POST.get("action") != "send":
            context = {"selected": selected, "arrived": replays.arrived(selected)}
            return self.render("resend", context)
        return self._resend(selected)

    def _resend(self, selected: Sequence[Delivery]) -> HttpResponse:
        sent = 0
        # First, so that either all are within the limit or none is sent.
        for _ in selected:
            self.door.check_rate(self.request, "resend")
        for delivery in selected:
            try:
                replays.resend(delivery, by=self.owner.by)
            except NotSubscribedError:
                continue
            sent += 1
        if not sent:
            raise RefusedError(
                "Nothing was sent: the endpoint is disabled or inactive."
            )
        message = f"{sent} of {len(selected)} are sent again."
        address = self.address("deliveries")
        return self.done(message, f"{address}?status=pending")


def _row(found: Found) -> Row:
    tone, state = wording.state(found.delivery)
    if found.resent:
        state = f"{state}, resent: {found.resent.value}"
        tone = "success" if found.resent == "delivered" else tone
    return Row(found, tone, state, wording.summary(found.delivery))
