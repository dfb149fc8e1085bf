"""Occurrences: the stored events of an account as a subscription gets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from django.db.models import QuerySet

from recording.mcp.events.arguments import Arguments
from recording.webhooks import PROFILE
from webhooks_core.models import Event

# Of stored bodies that one request reads.
MAX_READ_BYTES = 8 * 1024 * 1024
MAX_SCANNED = 500


class Stored(NamedTuple):
    """An event as it is stored."""

    pk: int
    body: Mapping[str, Any]

    @property
    def data(self) -> Mapping[str, Any]:
        data: Mapping[str, Any] = self.body["data"]
        return data

    @property
    def created_at(self) -> datetime:
        return datetime.fromisoformat(self.body["created_at"])


@dataclass(frozen=True, slots=True)
class Subject:
    """What a subscription is about: events of one type of one account, and its arguments."""

    account: int
    name: str
    arguments: Arguments

    def events(self) -> QuerySet[Event]:
        """Return the stored events of the type, whatever the arguments."""
        owner = str(self.account)
        return Event.objects.filter(profile=PROFILE, owner=owner, type=self.name)

    def newest(self, *, before: datetime | None = None) -> int:
        """Return the id of the newest event, or of the newest before a time; 0 if there is none."""
        rows = self.events()
        if before is not None:
            rows = rows.filter(created_at__lt=before)
        return rows.order_by("-pk").values_list("pk", flat=True).first() or 0

    def matches(self, stored: Stored) -> bool:
        return self.arguments.match(stored.data)

    def occurrence(self, stored: Stored) -> dict[str, Any]:
        """Return an event as this subscription gets it, without a cursor."""
        return envelope(self.name, stored.body) | {
            "data": self.arguments.shape(stored.data)
        }


def envelope(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an occurrence before its data."""
    return {"eventId": body["id"], "name": name, "timestamp": body["created_at"]}


class Window(NamedTuple):
    """Stored events in order, and whether there are more behind the last one."""

    events: Sequence[Stored]
    has_more: bool


def read_after(subject: Subject, event: int, *, since: datetime) -> Window:
    """Return the stored events behind an id, from a time on, as many as one request may read."""
    rows = subject.events().filter(pk__gt=event, created_at__gte=since)
    sizes = list(rows.order_by("pk").values_list("pk", "size")[: MAX_SCANNED + 1])
    pks = [pk for pk, _ in _within(sizes[:MAX_SCANNED])]
    return Window(read(pks), len(pks) < len(sizes))


def read_newest(subject: Subject, event: int, *, since: datetime) -> list[Stored]:
    """Return the newest events behind an id, in order, as many as one request may read."""
    rows = subject.events().filter(pk__gt=event, created_at__gte=since)
    sizes = list(rows.order_by("-pk").values_list("pk", "size")[:MAX_SCANNED])
    return read([pk for pk, _ in _within(sizes)])


def _within(sizes: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    room = MAX_READ_BYTES
    for number, (pk, size) in enumerate(sizes):
        room -= size
        if number and room < 0:
            return
        yield pk, size


def read(pks: Sequence[int]) -> list[Stored]:
    """Return stored events by their ids, in order."""
    rows = Event.objects.filter(pk__in=pks).order_by("pk").values_list("pk", "body")
    return [Stored(pk, parsed(bytes(body))) for pk, body in rows]


@lru_cache(maxsize=8)
def parsed(body: bytes) -> Mapping[str, Any]:
    """Return a stored body; many subscriptions read the same one at the same time."""
    result: Mapping[str, Any] = orjson.loads(body)
    return result
