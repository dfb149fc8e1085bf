"""Owners by their names: all rows of a page at once, one query per product that knows names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.models import Endpoint, Event
from webhooks_core.profiles import OwnerInfo


def name(
    rows: Iterable[Endpoint | Event], *, site: AdminSite, request: HttpRequest
) -> None:
    """Note on each row how its owner is shown to this user; `shown` returns it."""
    ids: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        ids[row.profile].add(row.owner)
    known = {profile: _named(profile, owners) for profile, owners in ids.items()}
    for row in rows:
        if owner := known[row.profile].get(row.owner):
            vars(row)["shown_owner"] = _shown(owner, site, request)


def shown(row: Endpoint | Event) -> str:
    """Return what `name` noted, with the id that the search finds; else the id alone."""
    noted: SafeString | None = vars(row).get("shown_owner")
    return format_html("{} ({})", noted, row.owner) if noted else row.owner


def with_product(row: Endpoint | Event) -> SafeString:
    """Return a cell of a list: the product, and below it the owner."""
    return format_html("{}<br>{}", row.profile, shown(row))


def _named(profile: str, owners: set[str]) -> dict[str, OwnerInfo]:
    known = {it.name: it for it in profiles.registered()}.get(profile)
    return (
        dict(known.describe_owners(owners)) if known and known.describe_owners else {}
    )


def _shown(owner: OwnerInfo, site: AdminSite, request: HttpRequest) -> SafeString:
    """Return the name, as a link for those who may see the page behind it."""
    model = apps.get_model(owner.model)
    if not site.is_registered(model):
        return format_html("{}", owner.name)
    if not site.get_model_admin(model).has_view_permission(request):
        return format_html("{}", owner.name)
    page = f"{site.name}:{model._meta.app_label}_{model._meta.model_name}_change"  # noqa: SLF001
    return format_html(
        '<a href="{}">{}</a>', reverse(page, args=[owner.pk]), owner.name
    )
