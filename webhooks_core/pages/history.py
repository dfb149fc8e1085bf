"""Who changed what of an owner's endpoints, and when."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse

from webhooks_core.models import EndpointChange
from webhooks_core.owners import changes
from webhooks_core.owners.changes import RECEIVER
from webhooks_core.pages.base import OwnerView

PAGE_SIZE = 50
Action = EndpointChange.Action
WORDS: dict[str, str] = {
    Action.CREATED: "added the endpoint",
    Action.CHANGED: "changed",
    Action.PAUSED: "paused it",
    Action.RESUMED: "resumed it",
    Action.DISABLED: "disabled it after too many failures in a row",
    Action.ENABLED: "enabled it",
    Action.DELETED: "deleted it",
    Action.ROTATED: "made a new secret",
    Action.SHOWN: "looked at the secret",
    Action.RESENT: "resent a delivery",
    Action.RETRIED: "retried a delivery now",
    Action.CANCELLED: "cancelled a delivery",
    Action.REPLAY_STARTED: "started a replay",
    Action.REPLAY_CANCELLED: "cancelled a replay",
}
# What an owner is told of others: not their names.
ACTORS = {
    "engine": "Signpost",
    "operator": "An operator",
    "command": "An operator",
    "configuration": "The configuration",
    "receiver": "The receiver",
}


class Line(NamedTuple):
    """One change in words; `details` has the fields that were changed."""

    change: EndpointChange
    actor: str
    words: str
    details: list[tuple[str, str]]

    @property
    def delivery_id(self) -> str:
        """The delivery that the change was about; "" if it was about none that can be shown."""
        is_shown = self.change.endpoint.deleted_at is None
        by_hand = self.change.action in {
            Action.RESENT,
            Action.RETRIED,
            Action.CANCELLED,
        }
        return self.change.subject if is_shown and by_hand else ""


def lines(rows: Iterable[EndpointChange]) -> list[Line]:
    return [
        Line(
            change,
            ACTORS.get(change.actor_kind, change.actor or "You"),
            _words(change),
            list(_details(change.details)),
        )
        for change in rows
    ]


def _words(change: EndpointChange) -> str:
    if change.actor_kind == RECEIVER.kind:
        return "switched it off"
    if change.action == Action.RESENT and not change.subject:
        return "resent what had failed"
    return WORDS.get(change.action, change.action)


def _details(details: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for name, value in details.items():
        label = name.replace("_", " ")
        if name == "overlap_h":
            yield "the old one signs too for", f"{value:g} h"
        elif isinstance(value, list) and len(value) == 2:
            yield label, f"{_text(value[0])} → {_text(value[1])}"
        elif value is None:
            yield label, "changed"
        else:
            yield label, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)[:300]
    return "none" if value in {None, ""} else str(value)[:300]


class Changes(OwnerView):
    """Of all endpoints, or of one (`endpoint`); `before` is the id of the last row."""

    def get(self, request: HttpRequest) -> HttpResponse:
        rows = changes.of_owner(self.owner.profile.name, self.owner.subscriptions.owner)
        if public_id := request.GET.get("endpoint", ""):
            rows = rows.filter(endpoint=self.owner.endpoint(public_id))
        before = request.GET.get("before", "")
        if before.isascii() and before.isdigit() and len(before) < 19:
            rows = rows.filter(pk__lt=int(before))
        found = list(rows[: PAGE_SIZE + 1])
        context = {
            "lines": lines(found[:PAGE_SIZE]),
            "older": found[PAGE_SIZE - 1].pk if len(found) > PAGE_SIZE else None,
            "endpoint_id": public_id,
        }
        return self.render("changes", context)
