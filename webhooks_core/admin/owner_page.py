"""The page of an owner: endpoints with their state, newest deliveries and events, changes, keys."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from webhooks_core import profiles
from webhooks_core.admin import display, owners
from webhooks_core.admin.rotation import RotationAdmin
from webhooks_core.models import Endpoint, Event
from webhooks_core.owners import changes, charts, delivery_search, endpoint_state

SHOWN, MAX_ENDPOINTS = 20, 200


class OwnerPageAdmin(RotationAdmin):
    """The admin of endpoints, as far as the page of their owner needs it."""

    pages = {**RotationAdmin.pages, "owner_page": "owner/<str:profile>/<path:owner>/"}

    def owner_page(
        self, request: HttpRequest, profile: str, owner: str
    ) -> HttpResponse:
        """Show everything of one owner on one page, by a constant number of queries."""
        known = profiles.find(profile)
        every = Endpoint.objects.filter(profile=profile, owner=owner)
        events = Event.objects.filter(profile=profile, owner=owner)
        if known is None or not (every.exists() or events.exists()):
            raise Http404
        rows = list(
            every.filter(deleted_at=None)
            .defer("custom_headers")
            .order_by("failing_since", "-pk")[:MAX_ENDPOINTS]
        )
        listed = Endpoint(profile=profile, owner=owner)
        owners.attach([listed], site=self.admin_site, request=request)
        return self.render(
            request,
            "admin/webhooks_core/endpoint/owner.html",
            title=f"{profile}: {owner}",
            owner=listed.owner_name or owner,
            profile=profile,
            endpoints=_with_states(rows),
            deliveries=_deliveries(every),
            events=_newest_events(known, owner),
            changes=changes.of_owner(profile, owner)[:SHOWN],
            lists=known.owner_lists(owner) if known.owner_lists else {},
        )


def _with_states(rows: list[Endpoint]) -> list[dict[str, Any]]:
    now = timezone.now()
    states = endpoint_state.describe_all(rows, now=now)
    days = charts.of_endpoints(rows, now=now)
    return [
        {
            "endpoint": row,
            "path": display.host_and_path(row.url),
            "state": states[row.pk],
            "badge": display.badge(
                states[row.pk].state.tone, states[row.pk].state.value
            ),
            "day": days[row.pk],
        }
        for row in rows
    ]


def _deliveries(endpoints: Any) -> list[dict[str, Any]]:
    wanted = delivery_search.DeliveryFilter()
    found = delivery_search.search(endpoints, wanted, size=SHOWN)
    return [
        {
            "delivery": item.delivery,
            "state": display.state(item.delivery),
            "path": display.host_and_path(item.delivery.endpoint.url),
        }
        for item in found.items
    ]


def _newest_events(profile: profiles.WebhookProfile, owner: str) -> list[Event]:
    """Return the newest events of an owner: the index has them by type."""
    rows = Event.objects.filter(profile=profile.name, owner=owner).defer("body")
    newest = [
        event
        for name in profile.event_types
        for event in rows.filter(type=name).order_by("-pk")[:SHOWN]
    ]
    return sorted(newest, key=lambda event: -event.pk)[:SHOWN]
