"""The portal in Chromium: in a frame of a provider's page on another site, and on its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, FrameLocator, expect

from gateway.models import PortalLink
from gateway.portal import links
from tests.gateway.portal.conftest import EVERYTHING, endpoint_of, event_of
from tests.receiver import receiver
from tests.running import PATIENCE_S, until
from tests.webhooks_core.engine import running_dispatcher
from webhooks_core.models import Delivery, Endpoint

pytestmark = [
    pytest.mark.django_db(transaction=True),
]


@contextmanager
def provider(frame: str = "") -> Iterator[tuple[str, list[str]]]:
    """Serve the page of a provider, which frames an address; yield its origin and that address."""
    framed = [frame]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<!doctype html><title>App</title><h1>Our app</h1><iframe src="{framed[0]}"'
            body += ' title="Webhooks" width="1000" height="900"></iframe>'
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", framed
    server.shutdown()
    server.server_close()


def new_url(**fields: Any) -> str:
    values = {"capabilities": EVERYTHING, "actor": "Grace"} | fields
    return links.create(tenant="acme", principal="ada", **values).url


@pytest.fixture
def in_production(settings, live_server) -> None:
    """As in production: a browser takes https for granted on localhost."""
    settings.BASE_URL = live_server.url
    settings.SESSION_COOKIE_SECURE = True


def failed_delivery(server: Any) -> None:
    endpoint_of(url=server.url)
    event_of(title="Harbour")
    until(
        lambda: Delivery.objects.filter(status=Delivery.Status.FAILED).exists(),
        "the delivery has failed",
    )


@pytest.mark.usefixtures("in_production")
def test_a_tenant_repairs_a_failure_in_a_frame_of_the_provider(
    live_server, settings, page, browser, complaints
):
    with provider() as (origin, framed), receiver(500) as server, running_dispatcher():
        settings.PORTAL_FRAME_ANCESTORS = [origin]
        server.answer = b"no such table: orders"
        failed_delivery(server)
        framed[0] = url = new_url()
        page.goto(origin)
        frame = page.frame_locator("iframe")
        expect(frame.get_by_text("Open the portal of acme")).to_be_visible()
        frame.get_by_role("button", name="Open").click()
        find_the_failure(frame)
        server.statuses[:] = [204]
        resend(frame)
        assert len(page.context.pages) == 1  # no other tab
        assert complaints == []
        is_used_up(browser, url)
        ends_at_the_next_click(frame)


def find_the_failure(frame: FrameLocator) -> None:
    frame.get_by_role("link", name="/hook").first.click()
    expect(frame.get_by_text("no such table: orders")).to_be_visible()
    frame.get_by_role("link", name="Deliveries", exact=True).click()
    frame.locator("li.row").get_by_role("link").first.click()
    expect(frame.get_by_role("heading", name="Not delivered:")).to_be_visible()


def resend(frame: FrameLocator) -> None:
    frame.get_by_role("button", name="Resend").click()
    message = "The event is sent again: this is its new delivery."
    expect(frame.get_by_text(message)).to_be_visible()
    headline = "Delivered: your server answered 204"
    expect(frame.get_by_role("heading", name=headline)).to_be_visible(
        timeout=1000 * PATIENCE_S
    )


def is_used_up(browser: Browser, url: str) -> None:
    with browser.new_context() as context:
        second = context.new_page()
        second.set_default_timeout(1000 * PATIENCE_S)
        second.goto(url)
        expect(second.get_by_role("heading", name="This link was used")).to_be_visible()


def ends_at_the_next_click(frame: FrameLocator) -> None:
    links.revoke(links.of_tenant("acme"), timezone.now())
    frame.get_by_role("link", name="Deliveries").click()
    ended = frame.get_by_role("heading", name="Your session has ended")
    expect(ended).to_be_visible()


@pytest.mark.usefixtures("in_production")
def test_a_site_that_is_not_named_cannot_frame_the_portal(settings, page):
    with provider() as (origin, framed):
        settings.PORTAL_FRAME_ANCESTORS = ["https://app.example"]
        framed[0] = new_url()
        refused = []
        page.on("console", lambda message: refused.append(message.text))
        page.goto(origin)
        until(lambda: bool(refused) or page.wait_for_timeout(50), "it is refused")
        assert "frame-ancestors https://app.example" in refused[0]
        button = page.frame_locator("iframe").get_by_role("button", name="Open")
        expect(button).to_have_count(0)


def test_with_cookies_blocked_a_page_says_so_and_the_link_stays_unused(
    live_server, settings, page
):
    """The cookies of a local instance are not for frames of another site."""
    settings.BASE_URL = live_server.url
    with provider() as (origin, framed):
        settings.PORTAL_FRAME_ANCESTORS = [origin]
        framed[0] = url = new_url()
        page.goto(origin)
        frame = page.frame_locator("iframe")
        frame.get_by_role("button", name="Open").click()
        title = "Your browser blocks the cookie of this page"
        expect(frame.get_by_role("heading", name=title)).to_be_visible()
        assert PortalLink.objects.get().opened_at is None
    page.goto(url)  # in a window of its own
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("You have no endpoints yet.")).to_be_visible()


@pytest.mark.usefixtures("in_production")
def test_everything_works_without_scripts(live_server, browser):
    with (
        browser.new_context(java_script_enabled=False) as context,
        receiver(204) as server,
    ):
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        page.goto(new_url())
        page.get_by_role("button", name="Open").click()
        page.get_by_role("link", name="Add an endpoint").click()
        page.get_by_label("URL").fill(server.url)
        page.get_by_role("button", name="Add and test").click()
        expect(page.locator("#secret")).to_contain_text("whsec_")
        page.get_by_role("link", name="Continue to the endpoint").click()
        page.get_by_text("Delete this endpoint…").click()
        page.get_by_label("Type delete to confirm").fill("delete")
        page.get_by_role("button", name="Delete the endpoint").click()
        expect(page.get_by_text("The endpoint was deleted.")).to_be_visible()
    assert Endpoint.objects.get().deleted_at is not None
