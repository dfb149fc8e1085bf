"""The operations of health, metrics and the document itself in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from config.operations.health import CHECKS
from webhooks_core.web.json_schema import (
    AND_OTHERS,
    STRING,
    add_operations,
    body,
    described,
    object_of,
    one_of,
    operation,
    parameter,
)

CHECK = object_of(
    ["status"],
    status=described("Whether it passed.", one_of("ok", "failed")),
    detail=described("Why not."),
)
READINESS = object_of(
    status=described(
        "`degraded`: it serves, but something is wrong.",
        one_of("ok", "degraded", "unavailable"),
    ),
    checks=described(
        "One for each check.",
        object_of(**{name: described(f"The check {name}.", CHECK) for name in CHECKS}),
    ),
)
PASSED = {name: {"status": "ok"} for name in CHECKS}
READY = {"status": "ok", "checks": PASSED}
NOT_READY = {
    "status": "unavailable",
    "checks": PASSED | {"database": {"status": "failed"}},
}
ALL = parameter("all", "Count faults of workers and a backlog too.", required=False)
FIGURES = body(
    STRING,
    media_type="text/plain",
    description="Figures, in the format that `Accept` asks for.",
)
FIGURES["content"]["application/openmetrics-text"] = {"schema": STRING}
HEALTHZ = object_of(status=described("Always `ok`.", {"const": "ok"}))
DOCUMENT = object_of(["openapi"], openapi=described("The version of OpenAPI."))
TAGS = ["Operation"]
OPERATIONS = {
    ("get", "/healthz"): operation(
        "operation_healthz",
        "Does this process answer",
        {200: body(HEALTHZ, {"example": {"status": "ok"}}, description="It answers.")},
        tags=TAGS,
    ),
    ("get", "/readyz"): operation(
        "operation_readyz",
        "Can it work, and does anybody deliver",
        {
            200: body(
                READINESS, {"example": READY}, description="This machine can serve."
            ),
            503: body(
                READINESS,
                {"example": NOT_READY},
                description="It cannot, or with `all` nobody delivers.",
            ),
        },
        parameters=[ALL | {"allowEmptyValue": True}],
        tags=TAGS,
    ),
    ("get", "/metrics"): operation(
        "operation_metrics",
        "Figures for Prometheus",
        {
            200: FIGURES,
            401: body(
                STRING,
                media_type="text/plain",
                description="Needs METRICS_TOKEN or a staff session.",
            ),
        },
        security=[{"metricsToken": []}, {}],
        tags=TAGS,
    ),
    ("get", "/openapi.json"): operation(
        "operation_document",
        "This document",
        {200: body(DOCUMENT | AND_OTHERS, description="The document.")},
        tags=TAGS,
    ),
}


def add_operation(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the addresses for operators to the document: a drf-spectacular hook."""
    result["components"].setdefault("securitySchemes", {})["metricsToken"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "METRICS_TOKEN.",
    }
    return add_operations(result, OPERATIONS)
