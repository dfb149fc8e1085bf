"""How rows appear on pages. All input from outside is escaped, or is plain text."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.models import Endpoint
from webhooks_core.owners.state import EndpointState
from webhooks_core.templatetags.owners import stamped


def badge(tone: str, text: str) -> SafeString:
    """Return a coloured label; `tone` is success, pending, error or neutral."""
    return format_html('<span class="badge badge-{}">{}</span>', tone, text)


def time(at: datetime | None) -> SafeString | None:
    """Return a time to the second, in UTC."""
    return stamped(at, f"{at:%Y-%m-%d %H:%M:%S}") if at else None


def pre(text: str) -> SafeString:
    return format_html('<pre tabindex="0">{}</pre>', text)


def host_and_path(url: str) -> str:
    """Return a url without its scheme and query, as people tell endpoints apart."""
    return url.partition("://")[2].partition("?")[0]


def endpoint_link(endpoint: Endpoint) -> SafeString:
    page = reverse("admin:webhooks_core_endpoint_change", args=(endpoint.pk,))
    return format_html('<a href="{}">{}</a>', page, host_and_path(endpoint.url))


def state(shown: EndpointState) -> SafeString:
    """Return the state of an endpoint: its word, since when, and why."""
    since = f"for {shown.duration}: " if shown.since else ""
    label = badge(shown.state.tone, shown.state.value)
    return format_html("{} {}{} {}", label, since, shown.reason, shown.answer)


def owner_names(rows: list[Endpoint]) -> dict[int, str]:
    """Return the product and the owner of each row, by its key, with one query per product."""
    names: dict[tuple[str, str], str] = {}
    for name in {row.profile for row in rows}:
        profile = profiles.find(name)
        if profile is not None and profile.names_of is not None:
            owners = [row.owner for row in rows if row.profile == name]
            named = profile.names_of(owners).items()
            names |= {(name, owner): text for owner, text in named}
    return {
        row.pk: f"{row.profile}: {names.get((row.profile, row.owner), row.owner)}"
        for row in rows
    }
