"""The operations of health, metrics and the document itself in the OpenAPI document."""

from __future__ import annotations

import re
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


EVENTS = "Events you receive"
SECTIONS = {
    "Recording webhooks": "Subscriptions of an account. [Guide](/guides/recording)",
    "Recording MCP": "Recordings for AI applications. [Guide](/guides/mcp)",
    "Gateway webhooks": "Subscriptions and documents of a tenant. [Guide](/guides/gateway)",
    "Gateway chat": "Language models in the form of OpenAI. [Guide](/guides/chat)",
    "Gateway keys": "Keys of a tenant, for its administrator. [Guide](/guides/gateway)",
    "Operation": "Health and figures. [Guide](/guides/operations)",
}
SCHEMES = {
    "recordingBearer": "**Recording**: a personal token from [your account](/accounts/tokens), or an "
    "OAuth access token. Sent as `Authorization: Bearer rec_pat_…`.",
    "gatewayKey": "**Gateway**: a gateway key. Sent as `Authorization: Bearer gw_key_…`.",
    "gatewayTenant": "**Gateway**, instead of a key: the tenant, from trusted proxies only. "
    "Locally this machine is trusted.",
    "gatewayPrincipal": "**Gateway**, with the tenant: the person or program that acts for it.",
    "metricsToken": "**Operation**: the value of `METRICS_TOKEN`.",
}
INTRODUCTION = """\
There are three ways in:

- **Recording**: webhooks of your account. Create a token in [your account](/accounts/tokens), or by
  `manage.py create_personal_token USER`, and send `Authorization: Bearer rec_pat_…`. Applications get a token by
  OAuth. [Guide](/guides/recording)
- **Gateway**: language models, and webhooks of a tenant. Send `Authorization: Bearer gw_key_…`
  (`manage.py create_gateway_key`), or behind a trusted proxy `X-Tenant-Id` and `X-Principal-Id`.
  [Guide](/guides/gateway)
- **Catalog**: GraphQL at [/graphql](/graphql), which this page does not show. [Guide](/guides/catalog)

The events you receive follow the operations: [verify a signature](/guides/receiving-webhooks).
*Authorize* stores a token in this page. *Try it out* sends a request with it.
"""
EXAMPLES = {"example", "examples", "default", "const", "enum"}
# A code span, which stays, or what a reader of Markdown would take for a tag.
TAG = re.compile(r"(`[^`]*`)|<")


def introduce(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say how to begin, and name and order what follows: the last drf-spectacular hook."""
    result["info"]["description"] = INTRODUCTION
    result["tags"] = [
        {"name": name, "description": text} for name, text in SECTIONS.items()
    ]
    for event in result.get("webhooks", {}).values():
        event["post"]["tags"] = [EVENTS]
    schemes = result["components"]["securitySchemes"]
    result["components"]["securitySchemes"] = {
        name: schemes[name] | {"description": text} for name, text in SCHEMES.items()
    }
    escaped: dict[str, Any] = _escaped(result)
    return escaped


def _escaped(value: Any) -> Any:
    """Keep `<key>` in descriptions, which are Markdown, from being read as a tag.

    Returns a copy: parts of the document are constants, which the next one contains too.
    """
    if isinstance(value, list):
        return [_escaped(item) for item in value]
    if not isinstance(value, dict):
        return value
    copy = {
        key: item if key in EXAMPLES else _escaped(item) for key, item in value.items()
    }
    if isinstance(text := copy.get("description"), str):
        copy["description"] = TAG.sub(lambda tag: tag[1] or "\\<", text)
    return copy


def add_operation(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the addresses for operators to the document: a drf-spectacular hook."""
    result["components"].setdefault("securitySchemes", {})["metricsToken"] = {
        "type": "http",
        "scheme": "bearer",
        "description": "METRICS_TOKEN.",
    }
    return add_operations(result, OPERATIONS)
