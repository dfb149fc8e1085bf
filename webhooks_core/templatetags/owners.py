"""Times and addresses on the pages of owners."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import urlsplit

from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from webhooks_core.pages import wording

register = template.Library()
CODE = re.compile("`([^`]+)`")


@register.simple_tag
def moment(at: datetime | None, empty: str = "never") -> SafeString | str:
    """Return a time in UTC; a script adds the local one, with the date if it is another day."""
    if at is None:
        return empty
    now = timezone.now()
    text = f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"
    return format_html(
        '<time datetime="{}" title="{} UTC" data-local>{} UTC</time>',
        at.isoformat(),
        f"{at:%Y-%m-%d %H:%M:%S}",
        text,
    )


@register.simple_tag
def ago(at: datetime | None, empty: str = "never") -> str:
    """Return how long ago a time was."""
    if at is None:
        return empty
    return f"{wording.in_words(timezone.now() - at)} ago"


@register.filter
def marked(text: str) -> SafeString:
    """Return a description as HTML; what stands between backticks is code."""
    return SafeString(CODE.sub(r"<code>\1</code>", escape(text)))


@register.filter
def host(url: str) -> str:
    """Return the host and port of a URL."""
    return urlsplit(url).netloc


@register.filter
def path(url: str) -> str:
    """Return the path and query of a URL: what distinguishes endpoints of one host."""
    parts = urlsplit(url)
    return parts._replace(scheme="", netloc="").geturl() or "/"
