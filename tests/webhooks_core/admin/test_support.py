"""The support group: all pages, no operation."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User

from tests.webhooks_core.admin.looking import NOWHERE, page
from tests.webhooks_core.making import endpoint, event, only
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

ADMIN = "/admin/webhooks_core"
migration = import_module("webhooks_core.migrations.0005_support_group")


@pytest.fixture
def group() -> Group:
    # Tests with real transactions empty the tables, this group with them.
    migration.add_group(apps, None)
    return Group.objects.get(name="support")


def test_the_group_may_view_and_nothing_else(group):
    codenames = set(group.permissions.values_list("codename", flat=True))
    models = ("attempt", "delivery", "endpoint", "event", "shift")
    assert codenames == {f"view_{model}" for model in models}
    migration.add_group(apps, None)
    assert group.permissions.count() == 5
    migration.remove_group(apps, None)
    assert not Group.objects.filter(name="support").exists()


def test_its_members_see_every_page_and_change_nothing(client, group):
    target = endpoint(NOWHERE)
    event()
    member = User.objects.create_user("helper", is_staff=True)
    member.groups.add(group)
    client.force_login(member)
    delivery = f"{ADMIN}/delivery/{only().pk}"
    for address in (
        f"{ADMIN}/delivery/",
        f"{delivery}/change/",
        f"{ADMIN}/endpoint/",
        f"{ADMIN}/endpoint/{target.pk}/change/",
        f"{ADMIN}/event/",
        f"{ADMIN}/event/catalogue/",
        f"{ADMIN}/shift/dashboard/",
    ):
        page(client, address)
    assert client.post(f"{delivery}/resend/").status_code == 403
    assert client.post(f"{ADMIN}/endpoint/{target.pk}/pause/").status_code == 403
    assert Delivery.objects.count() == 1
    assert Endpoint.objects.get().paused_at is None
