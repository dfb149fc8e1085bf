"""The home page: what this is, three ways to begin and, for operators, the state of the system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import Error as DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config.demo import data
from config.operations import access, health, links
from webhooks_core.owners import charts
from webhooks_core.upkeep import stats


class Card(NamedTuple):
    """One way to begin: a command, and its guide."""

    title: str
    text: str
    command: str
    guide: str
    link: str


CARDS = (
    Card(
        "Get an event",
        "Subscribe a URL. When the summary of a recording is ready, it gets a signed request.",
        """curl -sS {base_url}/v1/webhooks \\
  -H "Authorization: Bearer $(.venv/bin/python manage.py create_personal_token {account} --days 30)" \\
  -H 'Content-Type: application/json' \\
  -d '{{"url": "{receiver}", "events": ["summary.completed"]}}'""",
        "recording",
        "Recording webhooks",
    ),
    Card(
        "Ask a model",
        "One address for all models, in the form of OpenAI. The model echo repeats your message.",
        """curl -sS {base_url}/v1/chat/completions \\
  -H 'X-Tenant-ID: acme' -H 'X-Principal-ID: ada' \\
  -H 'Content-Type: application/json' \\
  -d '{{"model": "echo", "messages": [{{"role": "user", "content": "Ahoy!"}}]}}'""",
        "chat",
        "Chat through the gateway",
    ),
    Card(
        "Query the catalog",
        "Books, authors and categories over GraphQL. Open /graphql in a browser to try queries.",
        """curl -sS {base_url}/graphql \\
  -H 'Content-Type: application/json' \\
  -d '{{"query": "{{ getAllBooks {{ name author {{ lastName }} }} }}"}}'""",
        "catalog",
        "The catalog",
    ),
)


class Verdict(NamedTuple):
    """The state in one line."""

    tone: str
    word: str
    text: str


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Show the ways to begin to everyone, and the state to users who may see it."""
    is_trusted = _may_see_state(request)
    findings = _findings() if is_trusted else {}
    figures = _figures() if is_trusted else None
    context = {
        "links": [link for link in links.existing() if link.path != "/"],
        "cards": [card._replace(command=_command(request, card)) for card in CARDS],
        "deliveries": _deliveries(request),
        "send": _address("account-webhooks") or reverse("guide", args=["recording"]),
        "is_trusted": is_trusted,
        "verdict": _verdict(findings, figures),
        "findings": findings,
        "figures": _named(figures) if figures else None,
    }
    return render(request, "home.html", context)


def _command(request: HttpRequest, card: Card) -> str:
    """Return the command of a card for this reader."""
    user = request.user.get_username() or (data.USER if settings.LOCAL else "USER")
    receiver = (
        "http://127.0.0.1:9000/" if settings.LOCAL else "https://hooks.example.com/"
    )
    return card.command.format(
        base_url=settings.BASE_URL, account=user, receiver=receiver
    )


def _deliveries(request: HttpRequest) -> str:
    """Return where this reader sees deliveries: those of all owners, or the own ones."""
    own = _address("account-webhooks")
    if request.user.is_staff or not own:
        return reverse("admin:webhooks_core_delivery_changelist")
    return own


def _address(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


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


def _verdict(
    findings: Mapping[str, health.Finding], figures: stats.EngineStats | None
) -> Verdict:
    """Return the first fault, or what the engine does."""
    faults = [finding.message for finding in findings.values() if not finding.is_ok]
    if faults or figures is None:
        return Verdict("error", "Not well", faults[0] if faults else health.UNKNOWN)
    waiting = (
        "1 delivery waits"
        if figures.waiting == 1
        else f"{figures.waiting} deliveries wait"
    )
    text = (
        f"{figures.endpoints} endpoints: {figures.failing} failing, "
        f"{figures.disabled} disabled. {waiting}."
    )
    is_calm = not (figures.failing or figures.disabled)
    return Verdict("success" if is_calm else "pending", "Works", text)


def _named(figures: stats.EngineStats) -> Mapping[str, int]:
    hour = charts.of_all(now=timezone.now(), period=charts.PERIODS["1h"])
    return {
        "Endpoints": figures.endpoints,
        "Failing": figures.failing,
        "Disabled": figures.disabled,
        "Paused": figures.paused,
        "Pending": figures.waiting,
        "Of these suspended": figures.suspended,
        "In flight": figures.in_flight,
        "Live dispatchers": figures.dispatchers,
        "Attempts of the last hour": hour.attempts,
        "Of these failed": hour.failures,
    }
