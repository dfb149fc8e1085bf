"""The bodies of /v1/keys."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from gateway.configuration.shapes import COUNTED, WINDOWS
from gateway.fields import NamesField
from gateway.identity import SCOPES
from gateway.keys import (
    MAX_MODEL,
    MAX_MODELS,
    MAX_NAME,
    Created,
    KeyInputError,
    check_budget,
)
from gateway.models import GatewayKey
from gateway.names import NAME_RULE
from webhooks_core.web.examples import TIME, request_example, response_example
from webhooks_core.web.fields import (
    StrictCharField,
    StrictChoiceField,
    TimeField,
    TimeParameter,
)
from webhooks_core.web.json_schema import NUMBER, described, object_of, one_of

BUDGET = {"counts": "tokens", "window": "day", "limit": 100000}
KEY: dict[str, Any] = {
    "id": 12,
    "prefix": "gw_key_4fT9",
    "name": "build server",
    "principal": "robot",
    "scopes": ["chat"],
    "models": ["small"],
    "state": "live",
    "created_by": "ada",
    "created_at": TIME,
    "last_used_at": None,
    "expires_at": None,
    "budget": BUDGET,
}


@extend_schema_field(
    described(
        "What the key's requests may use in each window of the UTC calendar, besides all other "
        "budgets. That of your key if it is missing. Null: none of its own.",
        object_of(
            counts=described("What is counted.", one_of(*COUNTED)),
            window=described("After which time it starts again.", one_of(*WINDOWS)),
            limit=described(
                "At most so many; a cost in the currency of the prices.", NUMBER
            ),
        ),
    )
)
class BudgetField(serializers.JSONField):
    """What a budget counts, its window and its limit; checked as one of the configuration."""

    default_error_messages = {"null": "budget must have counts, window and limit."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict) or data.keys() != BUDGET.keys():
            self.fail("null")
        try:
            check_budget(data)
        except KeyInputError as error:
            raise ValidationError(f"{error}.") from error
        return data


@extend_schema_serializer(
    examples=[
        request_example(
            {"name": "build server", "scopes": ["chat"], "models": ["small"]}
        )
    ]
)
class NewKeySerializer(serializers.Serializer[Any]):
    """Every field may be missing; what a misspelt one limits would not be limited."""

    name = StrictCharField(
        required=False,
        allow_blank=True,
        help_text=f"To show in lists: at most {MAX_NAME} printable characters.",
    )
    principal = StrictCharField(
        required=False,
        help_text=f"Who uses it: {NAME_RULE}. Yours if it is missing.",
    )
    scopes = NamesField(
        required=False,
        child=StrictChoiceField(
            choices=SCOPES,
            error_messages={
                "invalid_choice": f"scopes must be at least one of {', '.join(SCOPES)}."
            },
        ),
        help_text="Those of your key, but `keys`, if it is missing. Operators alone give `keys`.",
    )
    models = NamesField(
        required=False,
        child=StrictCharField(),
        help_text=f"1 to {MAX_MODELS} names of at most {MAX_MODEL} characters: the only "
        "models that it calls. Those of your key if it is missing.",
    )
    expires_at = TimeParameter(
        required=False,
        help_text="RFC 3339. When your key expires, or never, if it is missing.",
    )

    budget = BudgetField(required=False)

    def to_internal_value(self, data: Any) -> Any:
        for name in data:
            if name not in self.fields:
                raise ValidationError({name: "A field of the body is unknown."})
        return super().to_internal_value(data)


@extend_schema_serializer(examples=[response_example(KEY)])
class KeySerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="The number of the key.")
    prefix = serializers.CharField(
        source="display_prefix", help_text="The first characters of the key."
    )
    name = serializers.CharField(help_text="To show in lists.")
    principal = serializers.CharField(help_text="Who uses it.")
    scopes = serializers.SerializerMethodField(help_text="What it may do.")
    models = serializers.ListField(
        child=serializers.CharField(),
        source="allowed_models",
        allow_null=True,
        help_text="The only models that it calls; null: those that its principal may.",
    )
    state = serializers.SerializerMethodField(help_text="`live` or `expired`.")
    created_by = serializers.SerializerMethodField(
        help_text="The principal whose key created it; null: an operator."
    )
    created_at = TimeField(help_text="UTC.")
    last_used_at = TimeField(
        allow_null=True, help_text="To the hour; null before the first use."
    )
    expires_at = TimeField(allow_null=True, help_text="Null: never.")
    budget = BudgetField(allow_null=True)

    def get_scopes(self, key: GatewayKey) -> list[str]:
        return sorted(key.rights.scopes)

    def get_state(self, key: GatewayKey) -> str:
        return key.state(timezone.now())

    def get_created_by(self, key: GatewayKey) -> str | None:
        return key.created_by or None


@extend_schema_serializer(
    examples=[response_example({**KEY, "key": "gw_key_<36 characters>"})]
)
class KeyCreatedSerializer(KeySerializer):
    key = serializers.CharField(help_text="The key, in this response alone.")

    def to_representation(self, instance: Created) -> dict[str, Any]:
        return {**KeySerializer(instance.key).data, "key": instance.text}
