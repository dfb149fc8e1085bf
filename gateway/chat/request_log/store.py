"""The rows of the request log: written in batches, and searched for a tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from gateway import json
from gateway.chat.metering.usage import HISTOGRAMS
from gateway.chat.models import LoggedRequest
from gateway.chat.request_log.entry import EndedRequest, last_text
from gateway.identity import Caller
from gateway.policy import storable
from webhooks_core.ids import public_id
from webhooks_core.models.lookups import among
from webhooks_core.web.pages import newest

PREFIX = "req_"
# In the table of counters that metrics read.
DROPPED = "log_dropped"
INSERTED = 100
EXCERPT = 120
# So many requests are searched for a text by one request; the cursor goes on behind them.
SEARCHED = 1000
COPIED = (
    *("tenant", "principal", "key_id", "upstream_model", "base_url", "request_id"),
    *("status", "error_status", "streamed", "estimated"),
)


def write(requests: Sequence[EndedRequest]) -> None:
    """Write ended requests, all or none. Raises DatabaseError."""
    LoggedRequest.objects.bulk_create(map(_row, requests), batch_size=INSERTED)


def write_dropped(counts: Sequence[Mapping[str, int]]) -> None:
    """Add what was dropped of each model to the counters. Raises DatabaseError."""
    with transaction.atomic():
        HISTOGRAMS.add(
            ((DROPPED, model, 0), (number, 0.0))
            for dropped in counts
            for model, number in dropped.items()
        )


def _row(ended: EndedRequest) -> LoggedRequest:
    completed, usage = ended.completed, ended.completed.usage
    first_chunk_s = completed.first_chunk_s
    return LoggedRequest(
        public_id=public_id(PREFIX),
        created_at=completed.at,
        operation=ended.operation,
        model=ended.model[:128],
        answered_by=completed.model,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        first_chunk_ms=None if first_chunk_s is None else round(first_chunk_s * 1000),
        duration_ms=round(completed.duration_s * 1000),
        prompt=json.dumps(ended.prompt).decode(),
        tools=json.dumps(ended.tools).decode(),
        answer=json.dumps(ended.answer).decode(),
        excerpt=storable(last_text(ended.prompt)[:EXCERPT]),
        error=storable(ended.error[:2000]),
        truncated=ended.is_cut,
        **{name: getattr(completed, name) for name in COPIED},
    )


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which requests of a tenant; a missing value is no condition."""

    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    key: int | None = None
    status: int | None = None
    text: str = ""

    def narrow(self, rows: QuerySet[LoggedRequest]) -> QuerySet[LoggedRequest]:
        """Return the rows that match, but for the text."""
        if self.since:
            rows = rows.filter(created_at__gte=self.since)
        if self.until:
            rows = rows.filter(created_at__lt=self.until)
        if self.model is not None:
            rows = rows.filter(model=self.model)
        if self.key is not None:
            rows = rows.filter(key_id=self.key)
        if self.status is not None:
            rows = rows.filter(has_status(self.status))
        return rows


def has_status(status: int) -> Q:
    """Return the condition for the status that counts."""
    return Q(error_status=status) | Q(error_status=0, status=status)


def has_text(text: str) -> Q:
    """Return the condition for a part of the prompt, the answer or the error."""
    # As it stands in JSON.
    escaped = json.dumps(text)[1:-1].decode()
    in_json = Q(prompt__icontains=escaped) | Q(answer__icontains=escaped)
    return in_json | Q(error__icontains=text)


def _of(caller: Caller) -> QuerySet[LoggedRequest]:
    """Return the requests of a caller's tenant, for the models that its key may call."""
    rows = LoggedRequest.objects.filter(tenant=caller.tenant)
    models = caller.rights.models
    return rows if models is None else rows.filter(model__in=models)


def search(
    caller: Caller, wanted: LogFilter, query: Mapping[str, Any]
) -> tuple[list[LoggedRequest], str]:
    """Return a page of the requests that a caller may see, newest first, and the cursor behind it.

    `query` has the `cursor` and the `page_size`.
    With a text, one page searches SEARCHED requests, and may be empty although others follow.
    """
    rows = wanted.narrow(_of(caller))
    rows = rows.defer("prompt", "answer", "tools")
    if not wanted.text:
        return newest(rows, query)
    many = {**query, "page_size": SEARCHED}
    searched, behind = newest(rows.only("pk"), many)
    matching = rows.filter(among([row.pk for row in searched]), has_text(wanted.text))
    found, cursor = newest(matching, {"page_size": query["page_size"]})
    return found, cursor or behind


def find(caller: Caller, name: str) -> LoggedRequest | None:
    """Return a request that a caller may see by its id, or the newest by its request id."""
    if not name.isprintable():  # as every id is; PostgreSQL refuses a NUL
        return None
    named = _of(caller).filter(Q(public_id=name) | Q(request_id=name))
    return named.order_by("-pk").first()
