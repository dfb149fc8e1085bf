"""The home page: links, a quick start and, for operators, the state of the system."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config.demo import data
from config.operations import access, health, links
from webhooks_core.upkeep import stats


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the links to everyone, and the state to users who may see it."""
    is_trusted = _may_see_state(request)
    context = {
        "links": [link for link in links.existing() if link.path != "/"],
        "base_url": settings.BASE_URL,
        "receiver": "http://127.0.0.1:9000/"
        if settings.LOCAL
        else "https://hooks.example.com/",
        "account": request.user.get_username()
        or (data.USER if settings.LOCAL else "USER"),
        "is_trusted": is_trusted,
        "findings": _findings() if is_trusted else {},
        "figures": _figures() if is_trusted else None,
    }
    return render(request, "home.html", context)


def _may_see_state(request: HttpRequest) -> bool:
    """Return True if the state may be shown. Without a database no user is logged in."""
    try:
        request.user.is_authenticated  # noqa: B018 - looks the session up, here and not later
        return access.may_see_state(request)
    except DatabaseError:
        request.user = AnonymousUser()
        return access.may_see_state(request)


def _findings() -> dict[str, health.Finding]:
    """Return the state, by names as people write them."""
    return {name.replace("_", " "): state for name, state in health.examine().items()}


def _figures() -> stats.EngineStats | None:
    try:
        return stats.engine_stats()
    except DatabaseError:  # the findings say so
        return None
