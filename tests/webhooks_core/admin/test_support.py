"""The support group: all pages, no operation."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.core.management.sql import emit_post_migrate_signal

from tests.factories import UserFactory
from tests.webhooks_core.admin.looking import page
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

ADMIN = "/admin/webhooks_core"


def create_rows() -> None:
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")


@pytest.fixture
def group() -> Group:
    return Group.objects.get(name="support")


def test_the_group_may_view_and_nothing_else(group):
    codenames = set(group.permissions.values_list("codename", flat=True))
    models = ("attempt", "delivery", "endpoint", "event", "dispatcherlease")
    assert codenames == {f"view_{model}" for model in models}
    group.permissions.clear()
    create_rows()
    assert not group.permissions.exists()  # an operator's change stays


def test_its_members_see_every_page_and_change_nothing(client, group):
    target = EndpointFactory.create()
    publish_event()
    member = UserFactory.create(staff=True, username="helper")
    member.groups.add(group)
    client.force_login(member)
    delivery = f"{ADMIN}/delivery/{only_delivery().pk}"
    for address in (
        f"{ADMIN}/delivery/",
        f"{delivery}/change/",
        f"{ADMIN}/endpoint/",
        f"{ADMIN}/endpoint/{target.pk}/change/",
        f"{ADMIN}/event/",
        f"{ADMIN}/event/catalogue/",
        f"{ADMIN}/dispatcherlease/dashboard/",
    ):
        page(client, address)
    assert client.post(f"{delivery}/resend/").status_code == 403
    assert client.post(f"{ADMIN}/endpoint/{target.pk}/pause/").status_code == 403
    assert Delivery.objects.count() == 1
    assert Endpoint.objects.get().paused_at is None
