"""Who sees which page, and that only POSTs of those who may change a row change anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group
from django.core.management.sql import emit_post_migrate_signal

from tests.webhooks_core.admin.endpoint_pages import OPERATIONS
from tests.webhooks_core.admin.looking import MODELS, looker, nothing_changes, page
from tests.webhooks_core.engine import only_delivery
from tests.webhooks_core.factories import (
    DispatcherLeaseFactory,
    EndpointFactory,
    publish_event,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain")]

ADMIN = "/admin/webhooks_core"
OF_DELIVERIES = ("resend", "retry-now", "cancel")


def row_pages() -> list[str]:
    return [
        f"{ADMIN}/{each._meta.model_name}/{each.objects.get().pk}" for each in MODELS
    ]


def every_page() -> list[str]:
    delivery, *_ = row_pages()
    lists = [f"{ADMIN}/{each._meta.model_name}/" for each in MODELS]
    more = [f"{delivery}/body/", f"{ADMIN}/event/catalogue/"]
    more += [f"{ADMIN}/dispatcherlease/dashboard/"]
    return [*lists, *more, *(f"{row}/change/" for row in row_pages())]


def operations() -> list[str]:
    delivery, _, endpoint, _ = row_pages()
    return [
        *(f"{delivery}/{name}/" for name in OF_DELIVERIES),
        *(f"{endpoint}/{name}/" for name in OPERATIONS),
    ]


@pytest.fixture
def unchanged(plain, db) -> Iterator[None]:
    """One row of each kind, which the test leaves as they are."""
    EndpointFactory.create()
    publish_event()
    DispatcherLeaseFactory.create()
    with nothing_changes():
        yield


@pytest.mark.usefixtures("unchanged")
def test_history_cannot_be_created_changed_or_deleted(admin_client):
    fields = {"status": 1, "url": "x", "host": "x", "type": "x", "_save": "Save"}
    for row in row_pages():
        listed = row.rpartition("/")[0]
        for address in (f"{row}/change/", f"{row}/delete/", f"{listed}/add/"):
            assert admin_client.post(address, fields).status_code == 403
        chosen = {"action": "delete_selected", "_selected_action": [row.split("/")[-1]]}
        admin_client.post(f"{listed}/", chosen)


@pytest.mark.usefixtures("unchanged")
def test_a_get_operates_nothing(admin_client):
    for address in operations():
        answer = admin_client.get(address)
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.usefixtures("unchanged")
def test_who_may_view_sees_every_page_and_changes_nothing(client):
    looker(client).groups.add(Group.objects.get(name="support"))
    texts = "".join(page(client, address) for address in every_page())
    assert "resend_selected" not in texts
    for address in operations():
        assert address not in texts
        assert client.post(address, {"hours": "1"}).status_code == 403
    chosen = {"action": "resend_selected", "_selected_action": [only_delivery().pk]}
    client.post(f"{ADMIN}/delivery/", chosen)


@pytest.mark.usefixtures("unchanged")
def test_others_see_nothing(client):
    looker(client)
    for address in every_page():
        page(client, address, 403)
    assert "Webhooks dashboard" not in page(client, "/admin/")
    client.logout()
    for address in every_page():
        answer = client.get(address)
        assert answer.status_code == 302
        assert "/admin/login/" in answer.headers["Location"]


@pytest.mark.parametrize("pk", [999, 2**63, 2**200])
def test_a_missing_row_is_a_404(admin_client, pk):
    for operation in ("delivery/{}/resend/", "endpoint/{}/pause/"):
        address = f"{ADMIN}/{operation.format(pk)}"
        assert admin_client.post(address).status_code == 404
    assert admin_client.get(f"{ADMIN}/delivery/{pk}/body/").status_code == 404
    assert admin_client.get(f"{ADMIN}/delivery/{pk}/change/").status_code == 302


def test_the_support_group_may_view_and_nothing_else():
    group = Group.objects.get(name="support")
    codenames = set(group.permissions.values_list("codename", flat=True))
    names = ["attempt", *(each._meta.model_name for each in MODELS)]
    assert codenames == {f"view_{name}" for name in names}
    group.permissions.clear()
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert not group.permissions.exists()  # an operator's change stays
