"""What the OpenAPI document says about health, metrics and itself."""

from __future__ import annotations

from typing import Any

from config.operations.health import CHECKS
from webhooks_core.api.json_schema import STRING, object_of

TAG = "Operation"
WORD = {"type": "string", "enum": ["ok", "failed"]}
CHECK = object_of(["status"], status=WORD, detail=STRING)
READINESS = object_of(
    status={"type": "string", "enum": ["ok", "degraded", "unavailable"]},
    checks={
        "type": "object",
        "properties": dict.fromkeys(CHECKS, CHECK),
        "required": [*CHECKS],
    },
)
WELL = {name: {"status": "ok"} for name in CHECKS}
FIT = {"status": "ok", "checks": WELL}
UNFIT = {
    "status": "unavailable",
    "checks": WELL | {"database": {"status": "failed"}},
}
ALL = {
    "name": "all",
    "in": "query",
    "schema": STRING,
    "allowEmptyValue": True,
    "description": "Count faults of workers and a backlog too.",
}


def add_operation(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Put what operators ask into the document (a drf-spectacular hook)."""
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
    about = {"operationId": f"operation_{name}", "summary": summary, "tags": [TAG]}
    return about | {"security": [{}]} | more


def _answer(told: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    media = {"schema": schema, "examples": {"example": {"value": example}}}
    return {"description": told, "content": {"application/json": media}}


def _text(told: str) -> dict[str, Any]:
    return {"description": told, "content": {"text/plain": {"schema": STRING}}}


def _healthz() -> dict[str, Any]:
    shape = object_of(status={"const": "ok"})
    answer = _answer("It answers.", shape, {"status": "ok"})
    return _operation("healthz", "Does this process answer", responses={"200": answer})


def _readyz() -> dict[str, Any]:
    answers = {
        "200": _answer("This machine can serve.", READINESS, FIT),
        "503": _answer("It cannot, or with `all` nobody delivers.", READINESS, UNFIT),
    }
    summary = "Can it work, and does anybody deliver"
    return _operation("readyz", summary, parameters=[ALL], responses=answers)


def _metrics() -> dict[str, Any]:
    figures = _text("Figures, in the format that `Accept` asks for.")
    figures["content"]["application/openmetrics-text"] = {"schema": STRING}
    answers = {"200": figures, "401": _text("Needs METRICS_TOKEN or a staff session.")}
    security: list[dict[str, list[str]]] = [{"metricsToken": []}, {}]
    return _operation(
        "metrics", "Figures for Prometheus", security=security, responses=answers
    )


def _document() -> dict[str, Any]:
    answer = {
        "description": "The document.",
        "content": {"application/json": {"schema": object_of([], openapi=STRING)}},
    }
    return _operation("document", "This document", responses={"200": answer})
