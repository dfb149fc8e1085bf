"""The home page: every address of this instance and, for operators, whether it works."""

from __future__ import annotations

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config.operations import access, health


class Link(NamedTuple):
    """An address, and what it is for."""

    path: str
    name: str
    text: str


PAGES = (
    Link("/accounts/webhooks", "Webhooks", "your endpoints and what was sent to them"),
    Link("/graphql", "Catalog", "books, authors and categories over GraphQL"),
    Link("/docs", "API reference", "every operation, field and error"),
    Link("/accounts", "Account", "tokens, connected applications, login"),
    Link("/admin/", "Administration", "all endpoints, deliveries and accounts"),
)
APIS = (
    Link("/v1/webhooks", "Recording webhooks", "summaries that are ready"),
    Link("/mcp", "MCP server", "recordings for AI applications"),
    Link("/v1/webhooks/subscriptions", "Gateway webhooks", "what happens to a tenant"),
    Link("/v2/chat/completions", "Chat", "one address for every language model"),
    Link("/v1/ingest", "Ingest", "documents of a tenant"),
    Link("/.well-known/oauth-authorization-server", "OAuth", "its metadata"),
)
# Of these, too, a browser shows the content.
DOCUMENTS = (
    Link("/openapi.json", "OpenAPI document", "the reference for programs"),
    Link("/healthz", "Health", "whether this process answers"),
    Link("/readyz", "Readiness", "whether it can serve, and whether workers deliver"),
    Link("/metrics", "Metrics", "for Prometheus"),
)


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the links to everyone, and the state to those who may see it."""
    findings = health.examine() if access.may_see_state(request) else {}
    context = {"pages": PAGES, "apis": APIS, "documents": DOCUMENTS}
    return render(request, "home.html", context | {"findings": findings})


@require_safe
def favicon(_: HttpRequest) -> HttpResponse:
    """Lead browsers to the mark, on pages that name no icon."""
    return redirect(static("signpost/mark.svg"))
