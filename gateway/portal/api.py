"""/v1/portal: links to the portal are made and revoked with a gateway key."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.identity import WEBHOOKS
from gateway.models import PortalLink
from gateway.portal import links
from gateway.viewsets import GatewayView
from webhooks_core.errors import NotFoundError
from webhooks_core.web.fields import (
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictListField,
    TimeField,
)
from webhooks_core.web.views import route

CAPABILITIES = (
    "What the visitor may do. `view`: everything but secrets, and is always needed; "
    "`view_secret`: signing secrets; `manage`: new endpoints, settings, rotation, deletion, tests "
    "and resends."
)


SHORTEST_S, LONGEST_S = 60, 604_800
MAX_ACTOR = 128


class NewLinkSerializer(serializers.Serializer[Any]):
    capabilities = StrictListField(
        child=StrictChoiceField(
            choices=links.CAPABILITIES,
            error_messages={
                "invalid_choice": "capabilities: known are "
                f"{', '.join(links.CAPABILITIES)}."
            },
        ),
        help_text=CAPABILITIES,
    )
    expires_in = StrictIntegerField(
        f"expires_in must be an integer from {SHORTEST_S} to {LONGEST_S}.",
        default=links.DEFAULT_S,
        min_value=SHORTEST_S,
        max_value=LONGEST_S,
        help_text="Seconds in which the link can be opened.",
    )
    actor = StrictCharField(
        required=False,
        help_text="Who is named in the lists of changes. Missing: your principal.",
    )

    def validate_capabilities(self, names: list[str]) -> list[str]:
        if "view" not in names:
            raise ValidationError(
                "capabilities must have view: no page is shown without."
            )
        return names

    def validate_actor(self, actor: str) -> str:
        if not (actor.isprintable() and actor.strip() and len(actor) <= MAX_ACTOR):
            raise ValidationError(
                f"actor must have 1 to {MAX_ACTOR} printable characters, and not only blanks."
            )
        return actor


class NewLinkCreatedSerializer(serializers.Serializer[Any]):
    url = serializers.CharField(
        help_text="Opens the portal once. It is not shown again."
    )
    expires_at = TimeField(source="link.expires_at", help_text="UTC.")
    id = serializers.CharField(
        source="link.public_id", help_text="`prt_` and 26 characters."
    )


class PortalView(GatewayView):
    """/v1/portal: the links of the caller's tenant."""

    required_scope = WEBHOOKS

    @route(
        name="portal_create",
        summary="Make a link that opens the tenant's portal once",
        request=NewLinkSerializer,
        response=NewLinkCreatedSerializer,
        status=201,
        throttle="create",
    )
    def post(self, request: Request) -> Response:
        self.read_query()
        fields = self.read_body().validated_data
        caller = self.caller
        created = links.create(
            tenant=caller.tenant,
            principal=caller.principal,
            key_id=caller.key_id,
            **fields,
        )
        return self.respond(created)

    @route(
        name="portal_revoke_all",
        summary="Revoke all portal links and sessions of the tenant",
        status=204,
        errors=(400,),
    )
    def delete(self, request: Request) -> Response:
        self.read_query()
        links.revoke(links.of_tenant(self.caller.tenant), timezone.now())
        return Response(status=204)


class PortalLinkView(GatewayView):
    """/v1/portal/{link_id}: one link."""

    required_scope = WEBHOOKS
    detail = True

    @route(
        name="portal_revoke",
        summary="Revoke a portal link and its session",
        status=204,
        errors=(400,),
    )
    def delete(self, request: Request, link_id: str) -> Response:
        link = links.find(self.caller.tenant, link_id)
        if link is None:
            raise NotFoundError("There is no such portal link.")
        self.read_query()
        links.revoke(PortalLink.objects.filter(pk=link.pk), timezone.now())
        return Response(status=204)
