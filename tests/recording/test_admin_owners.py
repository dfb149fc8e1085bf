"""Operators see whose account a webhook is, not a number alone."""

import pytest

from recording.accounts import owners
from recording.webhooks import PROFILE
from tests.factories import UserFactory
from tests.webhooks_core.admin.looking import SCRIPT, page, queries_of
from tests.webhooks_core.factories import EndpointFactory

pytestmark = pytest.mark.django_db
ENDPOINTS = "/admin/webhooks_core/endpoint/"


def pages(owner: object) -> list[str]:
    """Create an endpoint of an owner; return all pages that name the owner."""
    endpoint = EndpointFactory.create(profile=PROFILE, owner=str(owner))
    return [ENDPOINTS, f"{ENDPOINTS}{endpoint.pk}/change/"]


@pytest.mark.parametrize(("name", "shown"), [("ada", "ada"), (SCRIPT, "&lt;script")])
def test_every_page_names_the_user_as_text(admin_client, name, shown):
    for address in pages(UserFactory.create(username=name).pk):
        text = page(admin_client, address)
        assert shown in text, address
        assert SCRIPT not in text


@pytest.mark.parametrize("owner", ["4711", "nobody", "9" * 30, "²"])
def test_a_deleted_owner_is_shown_by_its_id(admin_client, owner):
    for address in pages(owner):
        assert owner in page(admin_client, address), address


def test_all_owners_of_a_page_are_read_at_once(admin_client, django_assert_num_queries):
    counts = []
    for number in (1, 4):
        for user in UserFactory.create_batch(number):
            EndpointFactory.create(profile=PROFILE, owner=str(user.pk))
        counts.append(len(queries_of(admin_client, ENDPOINTS)))
    assert counts[0] == counts[1]
    users = UserFactory.create_batch(2)
    with django_assert_num_queries(1):
        names = owners.names_of({str(user.pk) for user in users})
    assert list(names.values()) == [user.username for user in users]
