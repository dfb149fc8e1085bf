"""A link opens the portal once, in one browser, from a page of ours."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from gateway.models import PortalLink
from gateway.portal import links
from tests.clock import travel
from tests.gateway.portal.conftest import BASE, browser, new_link, path_of, press
from tests.webhooks_core.admin.looking import nothing_changes

pytestmark = pytest.mark.django_db


def shown(response, status, text):
    page = " ".join(response.content.decode().split())
    assert response.status_code == status, page
    assert text in page
    return page


def test_looking_uses_nothing_up(grace):
    path = path_of(new_link())
    with nothing_changes():
        before = list(PortalLink.objects.values())
        for client in (browser(), browser(), grace.browser):
            page = shown(client.get(path), 200, "Open the portal of <bdi>acme</bdi>")
            assert "Grace" in page
            assert client.head(path).status_code == 200
        assert list(PortalLink.objects.values()) == before
    assert press(browser(), path).status_code == 302


def test_pressing_opens_the_portal_of_the_tenant_and_ends_the_link():
    path, client = path_of(new_link()), browser()
    opened = press(client, path)
    assert opened["Location"] == BASE
    assert "Portal of <bdi>acme</bdi>" in client.get(BASE).content.decode()
    # Loaded again where it is open, as by a page that frames it: nothing is lost.
    assert client.get(path)["Location"] == BASE
    # Forwarded to somebody else: used up.
    other = browser()
    for response in (other.get(path), other.post(path)):
        shown(response, 410, "This link was used")
    assert other.get(BASE).status_code == 403


@pytest.mark.parametrize(
    ("site", "opens"),
    [
        ("same-origin", True),
        *((site, False) for site in ("none", "same-site", "cross-site", "")),
        (None, True),  # a browser of before 2023
    ],
)
def test_a_form_of_another_site_leaves_the_link_unused(site, opens):
    client = Client(headers={} if site is None else {"Sec-Fetch-Site": site})
    pressed = press(client, path_of(new_link()))
    if opens:
        assert pressed.status_code == 302
    else:
        shown(pressed, 403, "was too old")
    assert (PortalLink.objects.get().opened_at is not None) is opens


def test_a_link_that_is_over_says_so_and_so():
    with travel("2030-01-01T00:00:00Z", tick=False) as clock:
        expired, revoked = new_link(), new_link()
        links.revoke(
            PortalLink.objects.filter(pk=revoked.link.pk), revoked.link.created_at
        )
        clock.shift(timedelta(seconds=3600))
        for made, title in ((expired, "has expired"), (revoked, "was revoked")):
            client, path = browser(), path_of(made)
            shown(client.get(path), 410, f"This link {title}")
            shown(client.post(path), 410, f"This link {title}")
    assert not PortalLink.objects.exclude(opened_at=None).exists()


@pytest.mark.parametrize("token", ["x", "gw_portal_" + "0" * 36, "%00", "x" * 5000])
def test_what_is_no_link_says_so_without_a_query(
    client, token, django_assert_num_queries
):
    with django_assert_num_queries(0):
        shown(client.get(f"{BASE}/open/{token}"), 404, "This link is not valid")
        shown(client.post(f"{BASE}/open/{token}"), 404, "This link is not valid")


def test_the_address_of_a_link_is_told_to_nobody():
    path = path_of(new_link())
    client = browser()
    for response in (client.get(path), press(client, path)):
        assert response["Referrer-Policy"] == "no-referrer"
        assert "no-store" in response["Cache-Control"]
    for method in ("put", "delete", "patch", "options"):
        assert getattr(client, method)(path).status_code == 405


@pytest.mark.parametrize(
    ("is_secure", "name", "same_site"),
    [
        (True, "__Secure-portal", "None; Secure; Partitioned"),
        (False, "portal", "Lax"),
    ],
)
def test_cookies_work_in_a_frame_of_another_site_where_they_are_secure(
    settings, is_secure, name, same_site
):
    settings.SESSION_COOKIE_SECURE = is_secure
    client = browser()
    cookie = press(client, path_of(new_link())).cookies[name].OutputString()
    assert re.fullmatch(
        rf"{name}=gw_session_\w{{36}}; expires=[^;]+; HttpOnly; Max-Age=43200;"
        rf" Path=/portal; SameSite={same_site}",
        cookie,
    )
    assert client.get(BASE).status_code == 200
