"""The names of owners, with one query per product for all rows of a page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from django.apps import apps
from django.contrib import admin
from django.contrib.admin import AdminSite
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webhooks_core import profiles
from webhooks_core.models import Endpoint, Event
from webhooks_core.profiles import OwnerInfo

Row = Endpoint | Event


def attach(rows: Iterable[Row], *, site: AdminSite, request: HttpRequest) -> None:
    """Attach to each row the name of its owner as this user may see it, for `label`."""
    ids: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        ids[row.profile].add(row.owner)
    owners = {profile: _describe(profile, owners) for profile, owners in ids.items()}
    for row in rows:
        if owner := owners[row.profile].get(row.owner):
            row.owner_name = _linked_name(owner, site, request)


def label(row: Row) -> SafeString:
    """Return the attached name, and the owner's id with a link to everything of this owner."""
    page = reverse(
        "admin:webhooks_core_endpoint_owner_page", args=[row.profile, row.owner]
    )
    linked = format_html('<a href="{}">{}</a>', page, row.owner)
    return format_html("{} ({})", row.owner_name, linked) if row.owner_name else linked


@admin.display(description="product, owner")
def with_product(row: Row) -> SafeString:
    """Return a cell of a list: the product above the owner."""
    return format_html("{}<br>{}", row.profile, label(row))


def _describe(name: str, owners: set[str]) -> dict[str, OwnerInfo]:
    profile = profiles.find(name)
    if profile is None or profile.describe_owners is None:
        return {}
    return dict(profile.describe_owners(owners))


def _linked_name(owner: OwnerInfo, site: AdminSite, request: HttpRequest) -> SafeString:
    """Return the name, with a link for users who may see its page."""
    model = apps.get_model(owner.model)
    pages = site.get_model_admin(model) if site.is_registered(model) else None
    if pages is None or not pages.has_view_permission(request):
        return format_html("{}", owner.name)
    page = f"{site.name}:{pages.opts.app_label}_{pages.opts.model_name}_change"
    address = reverse(page, args=[owner.pk])
    return format_html('<a href="{}">{}</a>', address, owner.name)
