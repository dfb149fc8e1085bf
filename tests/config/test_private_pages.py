"""No cache keeps what the pages of owners answer."""

from __future__ import annotations

import pytest
from django.urls import get_resolver

from config.middleware import PRIVATE

pytestmark = pytest.mark.django_db


def pages(patterns, before="/"):
    """Return the addresses of the owners' pages, with some word for each part that varies."""
    for each in patterns:
        route = f"{before}{each.pattern}"
        if hasattr(each, "url_patterns"):
            yield from pages(each.url_patterns, route)
        elif route.startswith(PRIVATE):
            yield "/".join("1" if "<" in part else part for part in route.split("/"))


ADDRESSES = sorted(
    {
        *pages(get_resolver().url_patterns),
        *(f"{prefix}/nothing" for prefix in PRIVATE),
    }
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_cache_keeps_an_answer_of_an_owners_page(address, client):
    for method in ("get", "post", "put"):
        response = getattr(client, method)(address)
        cache = response.headers["Cache-Control"].split(", ")
        assert {"no-store", "private"} <= {*cache}, (method, response.status_code)


def test_the_addresses_are_found():
    assert {"/accounts/login/", "/accounts/webhooks", "/portal/open/1"} < {*ADDRESSES}
