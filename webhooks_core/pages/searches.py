"""The list of an owner's deliveries: chips, an event's id, older ones, and resending several."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

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
        self.state = _known(query.get("status", ""), STATES, default)
        self.hours = _known(query.get("hours", ""), HOURS, "")
        self.answer = _known(query.get("answer", ""), ANSWERS, "")
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

    def query(self, **changes: str) -> str:
        """Return the query of this search with some parts changed; never with the cursor."""
        parts = {
            "status": self.state,
            "hours": self.hours,
            "answer": self.answer,
            "type": self.event_type,
            "endpoint": self.endpoint.public_id if self.endpoint else "",
            "event_id": self.event_id,
        } | changes
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in parts.items() if value})
        return query.urlencode()

    def chips(self, part: str, names: dict[str, str], chosen: str) -> list[Chip]:
        return [
            Chip(name, self.query(**{part: value}), value == chosen)
            for value, name in names.items()
        ]


def _known(value: str, names: dict[str, str], default: str) -> str:
    return value if value in names else default


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
        context = {
            "search": search,
            "rows": [_row(found) for found in page.items],
            "older": search.query(cursor=page.cursor) if page.cursor else "",
            "is_first": not search.cursor,
            "endpoints": endpoints,
            "types": [each.name for each in offered(self.owner.profile)],
            "states": search.chips("status", STATES, search.state),
            "hours": search.chips("hours", HOURS, search.hours),
            "answers": search.chips("answer", ANSWERS, search.answer),
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
