"""The session of the portal: what is forged, foreign, expired or revoked does nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings as django_settings
from django.test import Client
from django.urls import URLPattern

from gateway.models import PortalLink
from gateway.portal import links
from gateway.portal.door import csrf_token
from gateway.portal.urls import PAGES
from tests.gateway.chat.factories import LoggedRequestFactory
from tests.gateway.portal.conftest import (
    BASE,
    ORIGIN,
    Visitor,
    delivery_of,
    endpoint_of,
    event_of,
    new_link,
    visit,
)
from tests.receiver import receiver
from tests.webhooks_core.admin.looking import nothing_changes
from tests.webhooks_core.engine import dispatch
from webhooks_core.models import Delivery, Endpoint, EndpointChange
from webhooks_core.owners import changes, replay_jobs
from webhooks_core.owners.replay_jobs import Kind, Selection
from webhooks_core.pages.owners import Capability

pytestmark = pytest.mark.django_db
PATTERNS: list[URLPattern] = PAGES[0]
Ids = tuple[str, str, str, str]


def ids_of(delivery: Delivery) -> Ids:
    """Return the ids of a delivery, its endpoint, and a replay to it."""
    endpoint, created = delivery.endpoint, delivery.created_at
    selection = Selection(
        kind=Kind.FAILED, since=created - timedelta(days=1), until=created
    )
    job = replay_jobs.start(endpoint, selection, by=changes.COMMAND)
    request = LoggedRequestFactory.create(tenant=endpoint.owner)
    return (
        *(endpoint.public_id, delivery.public_id, job.public_id),
        request.public_id,
    )


def addresses(ids: Ids) -> dict[str, str]:
    """Return all addresses below /portal, by their names."""
    names = ("endpoint_id", "delivery_id", "replay_id", "request_id")
    found = {}
    for pattern in PATTERNS:
        route = str(pattern.pattern)
        for name, value in zip(names, ids, strict=True):
            route = route.replace(f"<str:{name}>", value)
        found[str(pattern.name)] = route
    return found


def test_another_tenant_s_ids_are_nowhere(grace):
    mine = ids_of(delivery_of(endpoint_of()))
    theirs = ids_of(delivery_of(endpoint_of("globex")))
    fixed = set(addresses(("", "", "", "")).values())
    no_ids: list[Ids] = [("whsub_1", "dlv_1", "rpl_1", "req_1")]
    no_ids += [("%00",) * 4, ("x" * 3000,) * 4]

    def paths(*foreign: Ids) -> set[str]:
        asked = {path for ids in foreign for path in addresses(ids).values()}
        return asked - fixed - {*addresses(mine).values()}

    existing = paths(theirs, (*mine[:2], *theirs[2:]))
    with nothing_changes():
        for path in existing | paths(*no_ids):
            status = grace.browser.get(BASE + path).status_code
            assert status in {404, 405}, path
            if path in existing or status == 405:
                done = grace.send(path, action="rotate", word="rotate")
                assert done.status_code in {404, 405}, path
                if done.status_code == 404:
                    assert "There is no such page" in done.content.decode()


def test_lists_and_searches_show_nothing_of_another_tenant(grace):
    delivery = delivery_of(endpoint_of("globex", "http://127.0.0.1:9/secret-path"))
    endpoint_of()
    for query in (
        *("", "/changes", "/deliveries?status=all"),
        f"/deliveries?status=all&endpoint={delivery.endpoint.public_id}",
        f"/deliveries?status=all&event_id={delivery.event.public_id}",
    ):
        page = grace.get(query)
        assert "secret-path" not in page
        assert delivery.public_id not in page
    assert "There is no event with this id." in grace.get(
        f"/why?event_id={delivery.event.public_id}"
    )
    grace.get(f"/changes?endpoint={delivery.endpoint.public_id}", 404)
    mine = delivery_of(Endpoint.objects.filter(owner="acme")[0])
    with nothing_changes():
        both = [mine.public_id, delivery.public_id]
        assert (
            grace.send("/deliveries", delivery=both, action="send").status_code == 404
        )


FOREIGN_COOKIES = [
    *("", "x", "gw_session_" + "0" * 36, "gw_portal_" + "0" * 36, "é", "x" * 4000)
]


def test_without_a_session_every_address_says_so_and_does_nothing(db):
    client = Client(headers={"Origin": ORIGIN})
    ids = ids_of(delivery_of(endpoint_of()))
    asked = [("", path) for path in addresses(ids).values()]
    asked += [(cookie, "") for cookie in FOREIGN_COOKIES]
    with nothing_changes():
        for cookie, path in asked:
            client.cookies["portal"] = cookie
            for response in (client.get(BASE + path), client.post(BASE + path)):
                if response.status_code != 405:
                    assert response.status_code == 403, (cookie, path)
                    assert "is not open in this browser" in response.content.decode()


def test_the_token_of_a_link_and_the_session_of_an_account_are_no_session(
    grace, client
):
    made = new_link()
    client.cookies["portal"] = made.token
    assert client.get(BASE).status_code == 403
    grace.browser.cookies["sessionid"] = grace.browser.cookies["portal"].value
    assert grace.browser.get("/accounts").status_code == 302  # to the login
    login = Client()
    login.cookies["portal"] = "x"
    assert login.get(BASE).status_code == 403


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
    paths = addresses(ids_of(delivery_of(endpoint))).values()
    forged += [("null", own, path) for path in paths]
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
    assert "The endpoint was added" in grace.post("", url="http://127.0.0.1:9/a")


def test_a_session_ends_at_the_next_click_when_it_is_revoked(grace):
    endpoint = endpoint_of()
    grace.get()
    PortalLink.objects.update(return_url="https://app.example/")
    links.revoke(links.of_tenant("acme"), grace.link.created_at)
    with nothing_changes():
        page = grace.get(f"/endpoints/{endpoint.public_id}", 403)
        assert "Your session has ended" in page
        assert 'href="https://app.example/" target="_top"' in " ".join(page.split())
        path = f"/endpoints/{endpoint.public_id}/delete"
        assert grace.send(path, word="delete").status_code == 403


def test_a_session_ends_after_its_time(db):
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        person = visit(new_link())
        clock.shift(links.SESSION_FOR - timedelta(seconds=1))
        person.get()
        clock.shift(timedelta(seconds=1))
        assert "Your session has ended" in person.get(status=403)


def test_changes_name_who_opened_the_link(grace):
    grace.post("", url="http://127.0.0.1:9/a", active="on")
    endpoint = Endpoint.objects.get()
    path = f"/endpoints/{endpoint.public_id}"
    grace.post(path, url="http://127.0.0.1:9/b", description="by hand", active="on")
    grace.post(f"{path}/secret", action="show", word="show")
    rows = EndpointChange.objects.values_list("actor_kind", "actor", "action")
    assert set(rows) == {
        ("owner", "Grace", "created"),
        ("owner", "Grace", "changed"),
        ("owner", "Grace", "shown"),
    }
    assert "<bdi>Grace</bdi> looked at the secret" in grace.get("/changes")
    # The test event names the principal that made the link.
    assert b'"principal_id":"ada"' in bytes(Delivery.objects.get().event.body)


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
    changed = {"delete": "deleted", "show": "shown", "rotate": "rotated"}[word]
    assert EndpointChange.objects.latest("pk").action == changed


# By capability: the addresses that need it for a GET, and for a POST.
SEEN_WITH = {"secret": Capability.VIEW_SECRET, "body": Capability.VIEW_PAYLOAD}
DONE_WITH = {
    **dict.fromkeys(("start", "endpoint", "enable", "delete"), Capability.MANAGE),
    "headers": Capability.MANAGE,
    "secret": Capability.VIEW_SECRET,
    "test-filter": Capability.VIEW_PAYLOAD,
    **dict.fromkeys(("test", "deliveries", "replay", "replay-cancel"), Capability.SEND),
    **dict.fromkeys(("resend", "retry-now", "cancel"), Capability.SEND),
}


@pytest.mark.parametrize("capability", list(Capability))
def test_each_address_needs_its_capability(db, capability):
    person = visit(new_link(capabilities=["view", capability]))
    ids = ids_of(delivery_of(endpoint_of()))
    for name, path in addresses(ids).items():
        needed = SEEN_WITH.get(name, Capability.VIEW)
        may = needed in {Capability.VIEW, capability}
        seen = person.browser.get(BASE + path).status_code
        assert seen in ({200, 405} if may else {403}), name
        if DONE_WITH.get(name) == capability:
            continue
        with nothing_changes():
            done = Client(headers={"Origin": ORIGIN})
            done.cookies = person.browser.cookies
            token = person.form_token or token_of(person)
            data = {"csrfmiddlewaretoken": token, "word": "delete"}
            status = done.post(BASE + path, data).status_code
        assert status in {403, 405}, name


def token_of(person: Visitor) -> str:
    return csrf_token(person.browser.cookies["portal"].value)


@pytest.mark.django_db(transaction=True)
def test_view_alone_shows_no_payload_no_response_and_no_secret(db):
    """Neither on the pages of deliveries, nor in sentences about them."""
    with receiver(500) as server:
        server.answer = b"no such table: orders"
        endpoint = endpoint_of(url=server.url)
        delivery = delivery_of(endpoint, title="a private title")
        dispatch()
    endpoint.filter = {"data": {"title": "another"}}
    endpoint.save(update_fields=["filter"])
    filtered = event_of(title="a private title")
    viewer, reader = visit(new_link(capabilities=["view"])), visit(new_link())
    shown = ""
    for path in (
        *("", f"/endpoints/{endpoint.public_id}", "/deliveries?status=all"),
        *(f"/deliveries/{delivery.public_id}", "/changes"),
        f"/why?event_id={filtered.public_id}",
    ):
        page = viewer.get(path)
        for secret in ("a private title", "no such table", "whsec_"):
            assert secret not in page, path
        # What the visitor may not do is not offered.
        assert 'method="post"' not in page, path
        shown += reader.get(path)
    assert "a private title" in shown
    assert "no such table" in shown


def test_the_pages_are_framed_by_those_alone_that_the_setting_names(grace, settings):
    made = new_link()
    link = made.url.partition("8000")[2]
    paths = [
        BASE,
        f"{BASE}/endpoints/whsub_1",
        f"{BASE}/changes",
        link,
        f"{BASE}/open/x",
    ]
    for path in paths:
        response = grace.browser.get(path)
        assert response["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response["Content-Security-Policy"]
    settings.PORTAL_FRAME_ANCESTORS = ["https://app.example", "https://b.example"]
    for path in paths:
        response = grace.browser.get(path)
        policy = response["Content-Security-Policy"]
        assert "X-Frame-Options" not in response
        assert "frame-ancestors https://app.example https://b.example;" in f"{policy};"
        assert "default-src 'none'" in policy
        assert "_blank" not in response.content.decode()
    for path in ("/", "/accounts/login", "/docs", "/portal/nothing"):
        response = grace.browser.get(path)
        assert response["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in response["Content-Security-Policy"]


def test_messages_are_shown_in_a_frame_too(grace):
    """By a cookie of the portal: a browser drops the one of Django's messages there."""
    response = grace.send("", url="http://127.0.0.1:9/a")
    assert response.status_code == 200
    endpoint = Endpoint.objects.get()
    saved = grace.send(
        f"/endpoints/{endpoint.public_id}", url=endpoint.url, active="on"
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
    grace.post("", url="http://127.0.0.1:9/a", active="on")  # with its test
    with nothing_changes():
        endpoint = Endpoint.objects.get()
        page = grace.post(f"/endpoints/{endpoint.public_id}/test")
        assert "too many in a short time. Try again in" in page
        grace.post("", url="http://127.0.0.1:9/b")
