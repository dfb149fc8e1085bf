"""GET /v1/usage: the usage of the caller's tenant."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.chat.metering import reports
from gateway.chat.openapi import ANY, TAGS
from gateway.fields import StoredText
from gateway.identity import USAGE
from gateway.viewsets import GatewayView
from webhooks_core.web.fields import StrictCharField
from webhooks_core.web.pages import read_query

DEFAULT_DAYS = 30
LONGEST_DAYS = 366


class DayField(serializers.DateField):
    """A day (UTC) as `2026-11-21`."""

    def to_internal_value(self, value: Any) -> date:
        try:
            day = date.fromisoformat(value)
        except ValueError:
            day = date.min
        if day.year < 2000:
            text = (
                f"{self.field_name}: must be a day such as 2026-11-21, not before 2000."
            )
            raise ValidationError(text)
        return day


class UsageQuery(serializers.Serializer[Any]):
    """Which days, both included, summed by what, and of which principal and model."""

    to = DayField(required=False, help_text="Last day; today by default.")
    group_by = StrictCharField(
        required=False,
        allow_blank=True,
        help_text="Of day, principal, model.",
    )

    principal = StoredText(
        required=False, allow_blank=True, help_text="Only what it sent."
    )
    model = StoredText(
        required=False, allow_blank=True, help_text="Only this model endpoint."
    )

    def get_fields(self) -> dict[str, Any]:
        # Python has no attribute of this name.
        text = "First day (UTC); 30 days by default."
        first = DayField(required=False, help_text=text)
        return {**super().get_fields(), "from": first}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        last = attrs.get("to", datetime.now(UTC).date())
        first = attrs.get("from", last - timedelta(days=DEFAULT_DAYS - 1))
        if not 0 <= (last - first).days < LONGEST_DAYS:
            raise ValidationError(
                f"from, to: must be 1 to {LONGEST_DAYS} days, the first not after the last."
            )
        only = {name: attrs[name] for name in ("principal", "model") if name in attrs}
        group_by = _groups(attrs.get("group_by", ",".join(reports.GROUPS)))
        return {"first": first, "last": last, "group_by": group_by, "only": only}


def _groups(text: str) -> tuple[str, ...]:
    names = text.split(",") if text else []
    if unknown := [name for name in names if name not in reports.GROUPS]:
        raise ValidationError(
            f"group_by: {unknown[0][:50]!r} is none of {', '.join(reports.GROUPS)}."
        )
    return tuple(name for name in reports.GROUPS if name in names)


class UsageView(GatewayView):
    required_scope = USAGE

    @extend_schema(
        operation_id="gateway_usage",
        tags=TAGS,
        summary="What the tenant has used, summed by day, principal and model",
        parameters=[UsageQuery],
        responses={200: ANY},
    )
    def get(self, request: Request) -> Response:
        query = read_query(UsageQuery(), request)
        return Response(reports.usage(self.caller.tenant, **query))
