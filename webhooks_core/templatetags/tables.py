"""The table of the admin's pages: on a narrow screen it scrolls by itself, also by keyboard."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string

register = template.Library()


@register.simple_block_tag
def table(content: str, label: str, *headings: str) -> str:
    """Put rows into a table; `label` names it for screen readers."""
    context = {"rows": content, "label": label, "headings": headings}
    return render_to_string("admin/webhooks_core/table.html", context)
