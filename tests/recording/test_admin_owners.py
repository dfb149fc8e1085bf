"""Operators see whose account a webhook is, not a number alone."""

from __future__ import annotations

import pytest

from recording.accounts import owners
from recording.webhooks import PROFILE
from tests.factories import UserFactory
from tests.webhooks_core.admin.looking import SCRIPT, looker, page, queries_of
from tests.webhooks_core.factories import EndpointFactory, EventFactory

pytestmark = pytest.mark.django_db
ENDPOINTS, EVENTS = "/admin/webhooks_core/endpoint/", "/admin/webhooks_core/event/"
WATCHERS = ("view_endpoint", "view_event")


def pages(owner: object) -> list[str]:
    """Create rows of an owner; return all pages that name it."""
    of = {"profile": PROFILE, "owner": str(owner)}
    endpoint, event = EndpointFactory.create(**of), EventFactory.create(**of)
    return [
        *(ENDPOINTS, f"{ENDPOINTS}{endpoint.pk}/change/"),
        *(EVENTS, f"{EVENTS}{event.pk}/change/"),
    ]


def test_every_page_names_the_user_and_leads_to_it(admin_client):
    ada = UserFactory.create(username="ada")
    for address in pages(ada.pk):
        everything = f"/admin/webhooks_core/endpoint/owner/recording/{ada.pk}/"
        link = (
            f'<a href="/admin/auth/user/{ada.pk}/change/">ada</a> '
            f'(<a href="{everything}">{ada.pk}</a>)'
        )
        assert link in page(admin_client, address), address


def test_who_may_not_see_users_gets_the_name_alone(client):
    looker(client, WATCHERS)
    ada = UserFactory.create(username="ada")
    for address in pages(ada.pk):
        text = page(client, address)
        assert "ada (<a href=" in text, address
        assert "auth/user/" not in text


@pytest.mark.parametrize("owner", ["4711", "nobody", "9" * 30, "²"])
def test_a_deleted_owner_is_shown_by_its_id(admin_client, owner):
    for address in pages(owner):
        text = page(admin_client, address)
        assert owner in text, address
        assert f"({owner})" not in text


def test_a_name_is_text_whatever_it_holds(admin_client):
    mallory = UserFactory.create(username=SCRIPT)
    for address in pages(mallory.pk):
        text = page(admin_client, address)
        assert SCRIPT not in text, address
        assert "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize(
    ("address", "factory"), [(ENDPOINTS, EndpointFactory), (EVENTS, EventFactory)]
)
def test_all_owners_of_a_page_are_read_at_once(admin_client, address, factory):
    counts = []
    for number in (1, 4):
        for user in UserFactory.create_batch(number):
            factory.create(profile=PROFILE, owner=str(user.pk))
        counts.append(len(queries_of(admin_client, address)))
    assert counts[0] == counts[1]


def test_nobody_is_named_without_a_query_for_each(django_assert_num_queries):
    users = UserFactory.create_batch(2)
    with django_assert_num_queries(1):
        infos = owners.describe({str(user.pk) for user in users})
    assert [owner.name for owner in infos.values()] == [user.username for user in users]
