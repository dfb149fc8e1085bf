"""The operations of health, metrics and the document itself in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from config.operations.health import CHECKS
from webhooks_core.web.json_schema import AND_OTHERS, STRING, described, object_of

TAG = "Operation"
RESULT = {"type": "string", "enum": ["ok", "failed"]}
CHECK = object_of(
    ["status"],
    status=described("Whether it passed.", RESULT),
    detail=described("Why not."),
)
READINESS = object_of(
    status=described(
        "`degraded`: it serves, but something is wrong.",
        {"type": "string", "enum": ["ok", "degraded", "unavailable"]},
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
ALL = {
    "name": "all",
    "in": "query",
    "schema": STRING,
    "allowEmptyValue": True,
    "description": "Count faults of workers and a backlog too.",
}


def add_operation(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the addresses for operators to the document: a drf-spectacular hook."""
    result["components"].setdefault("securitySchemes", {})["metricsToken"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "METRICS_TOKEN.",
    }
    result["paths"] |= {
        "/healthz": {"get": _healthz()},
        "/readyz": {"get": _readyz()},
        "/metrics": {"get": _metrics()},
        "/openapi.json": {"get": _document()},
    }
    return result


def _operation(name: str, summary: str, **more: Any) -> dict[str, Any]:
    names = {"operationId": f"operation_{name}", "summary": summary, "tags": [TAG]}
    return names | {"security": [{}]} | more


def _json(description: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    media = {"schema": schema, "examples": {"example": {"value": example}}}
    return {"description": description, "content": {"application/json": media}}


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "content": {"text/plain": {"schema": STRING}}}


def _healthz() -> dict[str, Any]:
    schema = object_of(status=described("Always `ok`.", {"const": "ok"}))
    ok = _json("It answers.", schema, {"status": "ok"})
    return _operation("healthz", "Does this process answer", responses={"200": ok})


def _readyz() -> dict[str, Any]:
    responses = {
        "200": _json("This machine can serve.", READINESS, READY),
        "503": _json("It cannot, or with `all` nobody delivers.", READINESS, NOT_READY),
    }
    summary = "Can it work, and does anybody deliver"
    return _operation("readyz", summary, parameters=[ALL], responses=responses)


def _metrics() -> dict[str, Any]:
    figures = _text("Figures, in the format that `Accept` asks for.")
    figures["content"]["application/openmetrics-text"] = {"schema": STRING}
    return _operation(
        "metrics",
        "Figures for Prometheus",
        security=[{"metricsToken": []}, {}],
        responses={
            "200": figures,
            "401": _text("Needs METRICS_TOKEN or a staff session."),
        },
    )


def _document() -> dict[str, Any]:
    document = {
        "description": "The document.",
        "content": {
            "application/json": {
                "schema": object_of(
                    ["openapi"], openapi=described("The version of OpenAPI.")
                )
                | AND_OTHERS
            }
        },
    }
    return _operation("document", "This document", responses={"200": document})
