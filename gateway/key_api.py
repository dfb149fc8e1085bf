"""/v1/keys: a key with the scope `keys`, which operators alone give, manages those of its tenant.

A key gives no right that it does not have: what its request leaves out is what it has itself, and
its budget is each new key's.
"""

from __future__ import annotations

from typing import Any

import structlog
from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import keys
from gateway.errors import ForbiddenError, UnauthorizedError
from gateway.fields import ShownModel
from gateway.identity import KEYS, NAME_RULE, SCOPES
from gateway.models import GatewayKey
from gateway.viewsets import GatewayView
from webhooks_core.errors import BadRequestError, NotFoundError
from webhooks_core.web.fields import (
    StrictCharField,
    StrictChoiceField,
    StrictListField,
    TimeParameter,
)
from webhooks_core.web.pages import CursorQuery, items_shape, newest, page_of
from webhooks_core.web.views import ProductViewSet, route

log = structlog.stdlib.get_logger(__name__)

OPERATORS_ONLY = "Operators alone give and revoke keys with the scope keys."


class NewKeySerializer(serializers.Serializer[Any]):
    """Every field may be missing; what a misspelt one limits would not be limited."""

    name = StrictCharField(
        required=False,
        allow_blank=True,
        help_text=f"To show in lists: at most {keys.MAX_NAME} printable characters.",
    )
    principal = StrictCharField(
        required=False, help_text=f"Who uses it: {NAME_RULE}. Yours if it is missing."
    )
    scopes = StrictListField(
        required=False,
        child=StrictChoiceField(
            choices=SCOPES,
            error_messages={
                "invalid_choice": f"scopes must be at least one of {', '.join(SCOPES)}."
            },
        ),
        help_text="Those of your key, but `keys`, if it is missing. Operators alone give `keys`.",
    )
    models = StrictListField(
        required=False,
        child=StrictCharField(),
        help_text=f"1 to {keys.MAX_MODELS} names of at most {keys.MAX_MODEL} characters: the "
        "only models that it calls. Those of your key if it is missing.",
    )
    expires_at = TimeParameter(
        required=False,
        help_text="RFC 3339. When your key expires, or never, if it is missing.",
    )

    def to_internal_value(self, data: Any) -> Any:
        if unknown := data.keys() - self.fields.keys():
            raise ValidationError({min(unknown): "A field of the body is unknown."})
        return super().to_internal_value(data)


class KeySerializer(ShownModel[Any]):
    prefix = serializers.CharField(
        source="display_prefix", help_text="The first characters of the key."
    )
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
    budget = serializers.DictField(
        allow_null=True,
        help_text="What its requests may use besides all other budgets: `counts`, `window` and "
        "`limit`. Null: none of its own.",
    )

    class Meta:
        model = GatewayKey
        fields = (
            *("id", "prefix", "name", "principal", "scopes", "models", "state"),
            *("created_by", "created_at", "last_used_at", "expires_at", "budget"),
        )

    def get_scopes(self, key: GatewayKey) -> list[str]:
        return sorted(key.rights.scopes)

    def get_state(self, key: GatewayKey) -> str:
        return key.state(timezone.now())

    def get_created_by(self, key: GatewayKey) -> str | None:
        return key.created_by or None


class KeyCreatedSerializer(KeySerializer):
    key = serializers.CharField(help_text="The key, in this response alone.")

    class Meta(KeySerializer.Meta):
        fields: Any = (*KeySerializer.Meta.fields, "key")

    def to_representation(self, instance: keys.Created) -> dict[str, Any]:
        return {**KeySerializer(instance.key).data, "key": instance.text}


@extend_schema(tags=["Gateway keys"])
class KeyViewSet(GatewayView, ProductViewSet):
    """Requests of a manager: a caller with the scope `keys`."""

    required_scope = KEYS
    operation_prefix = "gateway_keys"
    lookup_url_kwarg = "key_id"
    serializer_class = KeySerializer

    @route(
        summary="List the tenant's keys that are not revoked, newest first",
        query=CursorQuery,
        response=items_shape("KeyPage", KeySerializer, has_cursor=True),
    )
    def list(self, request: Request) -> Response:
        found, cursor = newest(self._keys(), self.read_query())
        return page_of(KeySerializer(found, many=True), cursor)

    @route(
        summary="Create a key with at most the rights of yours; it is shown only here",
        request=NewKeySerializer,
        response=KeyCreatedSerializer,
        status=201,
        throttle="create",
    )
    def create(self, request: Request) -> Response:
        self.read_query()
        fields = self.read_body().validated_data
        own = GatewayKey.objects.live(timezone.now()).filter(pk=self.caller.key_id or 0)
        created = create(own.first(), fields)
        self._log("gateway key created", created.key)
        return self.respond(created)

    @route(summary="Describe a key", response=KeySerializer, errors=(400,))
    def retrieve(self, request: Request, key_id: str) -> Response:
        key = self._find(key_id)
        self.read_query()
        return self.respond(key)

    @route(summary="Revoke a key", status=204, errors=(400,))
    def destroy(self, request: Request, key_id: str) -> Response:
        key = self._find(key_id)
        self.read_query()
        if KEYS in key.rights.scopes:
            raise ForbiddenError(OPERATORS_ONLY)
        keys.revoke([key.pk])
        self._log("gateway key revoked", key)
        return Response(status=204)

    def _keys(self) -> QuerySet[GatewayKey]:
        tenant = self.caller.tenant
        return GatewayKey.objects.filter(tenant=tenant, revoked_at=None).order_by("-id")

    def _find(self, key_id: str) -> GatewayKey:
        """Return a key of the tenant. Raises 404, also for another tenant's."""
        # No query for what cannot be an id.
        if key_id.isascii() and key_id.isdigit() and len(key_id) <= 18:
            key = self._keys().filter(pk=int(key_id)).first()
            if key is not None:
                return key
        raise NotFoundError("There is no such key.")

    def _log(self, event: str, key: GatewayKey) -> None:
        """Log a change. What operators change, the admin keeps in its history."""
        scopes, by_key = sorted(key.rights.scopes), self.caller.key_id
        log.info(event, key_id=key.pk, tenant=key.tenant, scopes=scopes, by_key=by_key)


def create(own: GatewayKey | None, fields: dict[str, Any]) -> keys.Created:
    """Create a key by that of a manager, None if it was revoked meanwhile.

    Raises 400 for its values, 403 for rights that the manager does not have.
    """
    if own is None:
        raise UnauthorizedError("The gateway key is not valid.", refused=True)
    inherited: dict[str, Any] = {
        "name": "",
        "principal": own.principal,
        "scopes": sorted(own.rights.scopes - {KEYS}),
        "models": own.allowed_models,
        "expires_at": own.expires_at,
    }
    wanted = inherited | fields
    _check_rights(own, wanted)
    try:
        return keys.create(
            tenant=own.tenant, created_by=own.principal, budget=own.budget, **wanted
        )
    except keys.KeyInputError as error:
        raise BadRequestError(f"{error}.") from error


def _check_rights(own: GatewayKey, wanted: dict[str, Any]) -> None:
    rights, end = own.rights, own.expires_at
    if KEYS in wanted["scopes"]:
        raise ForbiddenError(OPERATORS_ONLY)
    if missing := sorted({*wanted["scopes"]} - rights.scopes):
        raise ForbiddenError(f"Your key does not have the scope {missing[0]}.")
    models = {*(wanted["models"] or ())}
    if rights.models is not None and (missing := sorted(models - rights.models)):
        raise ForbiddenError(f"Your key may not call the model {missing[0]}.")
    if end is not None and wanted["expires_at"] > end:
        raise ForbiddenError("The key must not expire after yours.")
