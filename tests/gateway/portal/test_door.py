"""The session of the portal: what is forged, foreign, expired or revoked does nothing."""

import re
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.test import Client
from django.urls import URLPattern
from django.utils import timezone

from gateway.portal import links
from gateway.portal.door import csrf_token
from gateway.portal.urls import PAGES
from tests.clock import travel
from tests.gateway.portal.conftest import (
    BASE,
    ORIGIN,
    delivery_of,
    endpoint_of,
    new_link,
    path_of,
    visit,
)
from tests.webhooks_core.admin.looking import nothing_changes
from webhooks_core.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db
PATTERNS: list[URLPattern] = PAGES[0]


def paths_of(delivery: Delivery) -> set[str]:
    """Return all addresses below /portal that name a delivery or its endpoint."""
    names = {"endpoint_id": delivery.endpoint.public_id}
    names |= {"delivery_id": delivery.public_id}
    routes = {str(pattern.pattern) for pattern in PATTERNS}
    for name, value in names.items():
        routes = {route.replace(f"<str:{name}>", value) for route in routes}
    return {route for route in routes if "<str:" not in route}


def test_another_tenant_s_ids_are_nowhere(grace):
    mine = paths_of(delivery_of(endpoint_of()))
    theirs = paths_of(delivery_of(endpoint_of("globex"))) - mine
    assert len(theirs) >= 7
    with nothing_changes():
        for path in theirs:
            for response in (grace.browser.get(BASE + path), grace.send(path)):
                assert response.status_code in {404, 405}, path


FOREIGN_COOKIES = [
    *("", "x", "gw_session_" + "0" * 36, "gw_portal_" + "0" * 36, "é", "x" * 4000)
]


def test_without_a_session_every_address_says_so_and_does_nothing(db):
    client = Client(headers={"Origin": ORIGIN})
    asked = [("", path) for path in paths_of(delivery_of(endpoint_of()))]
    asked += [(cookie, "") for cookie in FOREIGN_COOKIES]
    with nothing_changes():
        for cookie, path in asked:
            client.cookies["portal"] = cookie
            for response in (client.get(BASE + path), client.post(BASE + path)):
                if response.status_code != 405:
                    assert response.status_code == 403, (cookie, path)
                    assert "is not open in this browser" in response.content.decode()


FOREIGN_ORIGINS = [
    *("https://evil.example", "null", "", f"{ORIGIN}.evil.example"),
    "http://testserver:81",
]


def test_a_form_of_another_page_does_nothing(grace):
    endpoint = endpoint_of()
    delete = f"/endpoints/{endpoint.public_id}/delete"
    own, other = grace.form_token, visit(new_link()).form_token
    forged = [(origin, own, delete) for origin in FOREIGN_ORIGINS]
    forged += [(ORIGIN, token, delete) for token in ("", "0" * 64, "é", other)]
    forged += [("null", own, path) for path in paths_of(delivery_of(endpoint))]
    with nothing_changes():
        for origin, token, path in forged:
            strange = Client(headers={"Origin": origin} if origin else {})
            strange.cookies = grace.browser.cookies
            data = {"csrfmiddlewaretoken": token, "word": "delete"}
            response = strange.post(BASE + path, data)
            assert response.status_code == 403, (origin, token, path)
            assert "This page was too old" in response.content.decode()


def test_behind_a_proxy_the_origin_is_that_of_base_url(grace):
    grace.browser.defaults["HTTP_ORIGIN"] = django_settings.BASE_URL
    grace.browser.headers = {}
    assert "The endpoint was added" in grace.post(
        "/add", url="http://127.0.0.1:9/a", which="all"
    )


@pytest.mark.parametrize("is_revoked", [True, False])
def test_a_session_ends_at_the_next_click(db, is_revoked):
    with travel("2030-01-01T00:00:00Z", tick=False) as clock:
        person, endpoint = visit(new_link()), endpoint_of()
        clock.shift(links.SESSION_FOR - timedelta(seconds=1))
        person.get()
        if is_revoked:
            links.revoke(links.of_tenant("acme"), timezone.now())
        else:
            clock.shift(timedelta(seconds=1))
        with nothing_changes():
            assert "Your session has ended" in person.get(status=403)
            path = f"/endpoints/{endpoint.public_id}/delete"
            assert person.send(path, word="delete").status_code == 403


def test_who_closes_the_portal_ends_this_session_alone(grace):
    other = visit(new_link())
    assert Client().post(f"{BASE}/close").status_code == 403
    assert grace.browser.post(f"{BASE}/close").status_code == 403
    assert "<bdi>Grace</bdi>" in grace.get()
    assert "The portal is closed" in grace.post("/close")
    assert "Your session has ended" in grace.get(status=403)
    other.get()


WORDS = [
    ("delete", "/delete", {}),
    ("show", "/secret", {"action": "show"}),
    ("rotate", "/secret", {"action": "rotate", "overlap_h": 1}),
]


@pytest.mark.parametrize(("word", "path", "data"), WORDS)
def test_what_a_borrowed_click_must_not_do_asks_for_a_word(grace, word, path, data):
    endpoint = endpoint_of()
    address = f"/endpoints/{endpoint.public_id}{path}"
    shown = grace.get(address.removesuffix("/delete"))
    assert f"Type <code>{word}</code> to confirm" in shown
    with nothing_changes():
        for typed in ("", "yes", f"{word}x"):
            page = grace.post(address, word=typed, **data)
            assert f"Nothing was changed: type {word} to confirm." in page
            assert "whsec_" not in page
    page = grace.post(address, word=f" {word.title()} ", **data)
    assert "Nothing was changed" not in page


@pytest.mark.parametrize(
    ("capability", "path", "seen", "done"),
    [
        ("view", "", 200, 403),
        ("view", "/endpoints/{endpoint}/secret", 403, 403),
        ("view", "/deliveries/{delivery}/body", 200, 403),
        ("view", "/endpoints/{endpoint}/test", 405, 403),
        ("manage", "/endpoints/{endpoint}/secret", 403, 403),
        ("view_secret", "/endpoints/{endpoint}/secret", 200, 200),
    ],
)
def test_an_address_needs_its_capability(db, capability, path, seen, done):
    person = visit(new_link(capabilities=["view", capability]))
    delivery = delivery_of(endpoint_of())
    ids = {"endpoint": delivery.endpoint.public_id, "delivery": delivery.public_id}
    path = path.format(**ids)
    person.form_token = csrf_token(person.browser.cookies["portal"].value)
    with nothing_changes():
        assert person.browser.get(BASE + path).status_code == seen
        assert person.send(path, action="none").status_code in {done, 302}


def test_view_alone_shows_no_secret_and_offers_nothing_to_do(db):
    endpoint = endpoint_of()
    delivery = delivery_of(endpoint, title="a title")
    viewer = visit(new_link(capabilities=["view"]))
    shown = ""
    for path in (
        *("", f"/endpoints/{endpoint.public_id}", "/deliveries?show=all"),
        f"/deliveries/{delivery.public_id}",
    ):
        page = viewer.get(path)
        assert "whsec_" not in page, path
        actions = re.findall('method="post" *(?:action="(.*?)")?', page)
        assert actions == ["/portal/close"], path
        shown += page
    assert "a title" in shown


@pytest.mark.parametrize(
    "ancestors", [[], ["https://app.example", "https://b.example"]]
)
def test_the_pages_are_framed_by_those_alone_that_the_setting_names(
    grace, settings, ancestors
):
    settings.PORTAL_FRAME_ANCESTORS = ancestors
    below = ("", "/endpoints/whsub_1", "/deliveries", "/open/x")
    of_portal = [*(BASE + path for path in below), path_of(new_link())]
    others = ["/", "/accounts/login/", "/docs", "/portal/nothing"]
    for path in of_portal + others:
        response = grace.browser.get(path)
        policy = f"{response['Content-Security-Policy']};"
        framing = ancestors if path in of_portal else []
        named = " ".join(framing) or "'none'"
        assert f"frame-ancestors {named};" in policy, path
        assert (response.get("X-Frame-Options") == "DENY") is not bool(framing)
        if framing:
            assert "default-src 'none'" in policy
            assert "_blank" not in response.content.decode()


def test_messages_are_shown_in_a_frame_too(grace):
    """By a cookie of the portal: a browser drops the one of Django's messages there."""
    endpoint = endpoint_of()
    saved = grace.send(
        f"/endpoints/{endpoint.public_id}", url=endpoint.url, which="all", active="on"
    )
    assert saved.cookies["portal_messages"]["path"] == "/portal"
    assert "messages" not in saved.cookies
    page = grace.get(f"/endpoints/{endpoint.public_id}")
    assert "The settings were saved." in page
    assert "The settings were saved." not in grace.get(
        f"/endpoints/{endpoint.public_id}"
    )


def test_limits_are_those_of_the_principal_that_made_the_link(grace, settings):
    settings.GATEWAY_RATES = settings.GATEWAY_RATES | {
        "test": "1/hour",
        "create": "1/day",
    }
    grace.post(
        "/add", url="http://127.0.0.1:9/a", which="all", active="on"
    )  # with its test
    with nothing_changes():
        endpoint = Endpoint.objects.get()
        page = grace.post(f"/endpoints/{endpoint.public_id}/test")
        assert "too many in a short time. Try again in" in page
        grace.post("/add", url="http://127.0.0.1:9/b", which="all")
