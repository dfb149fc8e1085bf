"""Events of the gateway: published to a tenant's subscriptions with their origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import uuid4

from django.http import HttpRequest
from rest_framework.request import Request

from gateway.event_types import POLICY_VIOLATION
from gateway.identity import SYSTEM, Caller
from gateway.models import PolicyDecision
from gateway.trace_ids import trace_id
from gateway.webhooks import PROFILE
from webhooks_core import publishing
from webhooks_core.models import Event
from webhooks_core.times import iso


@dataclass(frozen=True, slots=True)
class Origin:
    """The principal, the request and the trace that caused an event."""

    tenant: str
    principal: str
    request_id: str
    trace_id: str

    @classmethod
    def of(cls, caller: Caller, request: HttpRequest | Request) -> Self:
        """Return the origin of an event that a request causes."""
        return cls(
            tenant=caller.tenant,
            principal=caller.principal,
            request_id=getattr(request, "request_id", "") or uuid4().hex,
            trace_id=trace_id(request.headers.get("traceparent")),
        )

    @classmethod
    def system(cls, tenant: str) -> Self:
        """Return the origin of an event that an operator causes."""
        return cls(tenant, SYSTEM, uuid4().hex, trace_id(None))

    @property
    def metadata(self) -> dict[str, str]:
        return {
            "request_id": self.request_id,
            "principal_id": self.principal,
            "trace_id": self.trace_id,
        }


def publish(*, origin: Origin, event_type: str, data: Mapping[str, Any]) -> Event:
    """Store an event and its deliveries in the caller's transaction; return the event.

    Raises UnknownEventTypeError, or TypeError when `data` is not JSON.
    """
    return publishing.publish(
        profile=PROFILE,
        owner=origin.tenant,
        event_type=event_type,
        data=data,
        metadata=origin.metadata,
    )


def publish_violation(decision: PolicyDecision) -> Event:
    """Publish a denial as `audit.policy_violation`."""
    return publish(
        origin=Origin(
            tenant=decision.tenant,
            principal=decision.principal,
            request_id=decision.request_id or uuid4().hex,
            trace_id=decision.trace_id or trace_id(None),
        ),
        event_type=POLICY_VIOLATION,
        data={
            "decision_id": decision.public_id,
            "decision": "denied",
            "principal_id": decision.principal,
            "action": decision.action,
            "resource": decision.resource,
            "reason": decision.reason,
            "decided_at": iso(decision.created_at),
        },
    )
