"""The tab of the portal with the request log: the list, and one request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.http import Http404, HttpRequest, HttpResponse

from gateway.chat.models import LoggedRequest
from gateway.chat.request_log import store
from gateway.chat.request_log.serializers import RequestsQuery
from gateway.portal.usage import TenantPage
from gateway.rights import REQUESTS
from webhooks_core.owners import payloads
from webhooks_core.pages.owners import Capability
from webhooks_core.pages.searches import HOURS, chips, query_of
from webhooks_core.web.owner_views import position

PAGE_SIZE = 25
# The fields of the form, with their labels; only who may see texts searches in them.
TEXT = "text"
FILTERS = {
    "model": "Model",
    "status": "Status",
    "key": "Number of a key",
    TEXT: "Text in prompt or answer",
}
NO_TEXTS = "This link does not allow to search in prompts and answers."


class Requests(TenantPage):
    """The logged requests of the tenant, newest first."""

    scope = REQUESTS

    def get(self, request: HttpRequest) -> HttpResponse:
        caller = self.caller
        values = {
            name: request.GET[name].strip()
            for name in (*FILTERS, "hours", "cursor")
            if request.GET.get(name, "").strip()
        }
        query = RequestsQuery(data=_asked(values))
        error = "" if query.is_valid() else _first_text(query.errors)
        sees_texts = self.owner.may(Capability.VIEW_PAYLOAD)
        if TEXT in values and not sees_texts:
            error = NO_TEXTS
        rows: list[LoggedRequest] = []
        cursor = ""
        if not error:
            rows, cursor = store.search(
                caller,
                RequestsQuery.filter(query.validated_data),
                before=position(query.validated_data),
                size=PAGE_SIZE,
            )
        context = {
            "rows": [(row, *outcome(row)) for row in rows],
            "values": values,
            "fields": [
                (name, label, values.get(name, ""))
                for name, label in FILTERS.items()
                if name != TEXT or sees_texts
            ],
            "error": error,
            "older": query_of(values | {"cursor": cursor}) if cursor else "",
            "hours": chips(values | {"cursor": ""}, "hours", HOURS),
        }
        return self.render("requests", context, status=400 if error else 200)


def _asked(values: dict[str, str]) -> dict[str, str]:
    """Return the parameters of GET /v1/requests for those of the page."""
    asked = {name: values[name] for name in (*FILTERS, "cursor") if name in values}
    if (hours := values.get("hours", "")) in HOURS and hours:
        since = datetime.now(UTC) - timedelta(hours=int(hours))
        asked["since"] = since.isoformat()
    return asked


def _first_text(errors: Any) -> str:
    """Return the first text of a serializer's errors."""
    return str(next(iter(errors.values()))[0])


def outcome(row: LoggedRequest) -> tuple[str, str]:
    """Return the tone and the text of how a request ended."""
    status = row.error_status or row.status
    if status < 400:
        return "success", str(status)
    if status == 499:
        return "pending", "499: the client left"
    return "error", f"{row.status}, then {status}" if row.error_status else str(status)


class Request(TenantPage):
    """One request; its texts need the capability to see payloads."""

    scope = REQUESTS

    def get(self, request: HttpRequest, request_id: str) -> HttpResponse:
        row = store.find(self.caller, request_id)
        if row is None:
            raise Http404
        context: dict[str, Any] = {"row": row, "outcome": outcome(row)}
        if self.owner.may(Capability.VIEW_PAYLOAD):
            context |= {
                "tools": orjson.loads(row.tools),
                "prompt": payloads.pretty(row.prompt.encode()),
                "answer": payloads.pretty(row.answer.encode()),
            }
        return self.render("request", context)
