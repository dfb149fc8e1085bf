"""Times, addresses and states on pages."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlsplit

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core.models import Delivery
from webhooks_core.owners import wording
from webhooks_core.owners.state import in_words

register = template.Library()


@register.simple_tag
def moment(at: datetime | None, empty: str = "never") -> SafeString | str:
    """Return how far a time is from now, as `5 min ago` or `in 12 s`; its title is the time itself."""
    if at is None:
        return empty
    now = timezone.now()
    ahead, past = f"in {in_words(at - now)}", f"{in_words(now - at)} ago"
    return stamped(at, ahead if at > now else past)


@register.simple_tag
def due(at: datetime) -> SafeString:
    """Return when the next attempt is made, as `in 12 s`, or `now`."""
    now = timezone.now()
    return stamped(at, f"in {in_words(at - now)}" if at > now else "now")


@register.simple_tag
def since(at: datetime | None) -> SafeString | str:
    """Return for how long something has lasted, as `12 h`."""
    return stamped(at, in_words(timezone.now() - at)) if at else ""


def stamped(at: datetime, text: str) -> SafeString:
    """Return a time in words, with itself in UTC as its title."""
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(),
        f"{at:%Y-%m-%d %H:%M:%S}",
        text,
    )


@register.filter
def host(url: str) -> str:
    """Return the host and port of a URL."""
    return urlsplit(url).netloc


@register.filter
def path(url: str) -> str:
    """Return the path and query of a URL: what distinguishes endpoints of one host."""
    parts = urlsplit(url)
    return parts._replace(scheme="", netloc="").geturl() or "/"


@register.simple_tag
def badge(delivery: Delivery) -> SafeString:
    """Return the state of a delivery as a coloured word."""
    tone, word = wording.state(delivery)
    return format_html('<span class="badge badge-{}">{}</span>', tone, word)


register.filter("duration", in_words)  # how long something takes, as `5 min`
register.filter("summary", wording.summary)
