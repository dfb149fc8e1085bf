"""The query parameters of GET /v1/usage."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.chat.metering.reports import GROUPS
from webhooks_core.web.fields import StrictCharField

DEFAULT_DAYS = 30
LONGEST_DAYS = 366
# The parameters that leave out all other usage.
ONLY = {
    "principal": "Only what it sent.",
    "model": "Only this model endpoint.",
}


class DayField(serializers.DateField):
    """A day (UTC) as `2026-11-21`."""

    def to_internal_value(self, value: Any) -> date:
        try:
            day = date.fromisoformat(value)
        except ValueError as error:
            raise ValidationError(
                f"{self.field_name}: must be a day such as 2026-11-21."
            ) from error
        if day.year < 2000:
            raise ValidationError(f"{self.field_name}: is too long ago.")
        return day


class UsageQuery(serializers.Serializer[Any]):
    """Which days, both included, summed by what, and of which principal and model."""

    to = DayField(required=False, help_text="Last day; today by default.")
    group_by = StrictCharField(
        required=False,
        allow_blank=True,
        help_text="Of day, principal, model.",
    )

    def get_fields(self) -> dict[str, Any]:
        only = {
            name: StrictCharField(required=False, allow_blank=True, help_text=text)
            for name, text in ONLY.items()
        }
        # Python has no attribute of this name.
        first = DayField(
            required=False, help_text="First day (UTC); 30 days by default."
        )
        return {**super().get_fields(), **only, "from": first}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        last = attrs.get("to", datetime.now(UTC).date())
        first = attrs.get("from", last - timedelta(days=DEFAULT_DAYS - 1))
        if not 0 <= (last - first).days < LONGEST_DAYS:
            raise ValidationError(
                f"from, to: must be 1 to {LONGEST_DAYS} days, the first not after the last."
            )
        only = {name: attrs[name] for name in ONLY if name in attrs}
        if any("\x00" in value for value in only.values()):
            raise ValidationError(f"{', '.join(ONLY)}: must not hold a NUL.")
        group_by = _groups(attrs.get("group_by", ",".join(GROUPS)))
        return {"first": first, "last": last, "group_by": group_by, "only": only}


def _groups(text: str) -> tuple[str, ...]:
    names = text.split(",") if text else []
    if unknown := [name for name in names if name not in GROUPS]:
        raise ValidationError(
            f"group_by: {unknown[0][:50]!r} is none of {', '.join(GROUPS)}."
        )
    return tuple(name for name in GROUPS if name in names)
