"""The portal in Chromium: in a frame of a provider's page on another site, and on its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, expect

from gateway.portal import links
from tests.gateway.portal.conftest import EVERYTHING, endpoint_of, event_of
from tests.receiver import Receiver, receiver
from tests.running import PATIENCE_S, until
from tests.webhooks_core.engine import running_dispatcher
from webhooks_core.models import Delivery

pytestmark = [
    pytest.mark.django_db(transaction=True),
]


@contextmanager
def provider() -> Iterator[Receiver]:
    """Serve the page of a provider, which frames no address yet."""
    with receiver(200) as site:
        site.headers["Content-Type"] = "text/html"
        yield site


def framing(url: str) -> bytes:
    frame = f'<iframe src="{url}" title="Webhooks" width="1000" height="900"></iframe>'
    return f"<!doctype html><title>App</title><h1>Our app</h1>{frame}".encode()


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
    live_server, settings, page, complaints
):
    with provider() as site, receiver(500) as server, running_dispatcher():
        settings.PORTAL_FRAME_ANCESTORS = [site.origin]
        server.answer = b"no such table: orders"
        failed_delivery(server)
        site.answer = framing(new_url())
        page.goto(site.origin)
        frame = page.frame_locator("iframe")
        expect(frame.get_by_text("Open the portal of acme")).to_be_visible()
        frame.get_by_role("button", name="Open").click()
        find_the_failure(frame)
        server.statuses[:] = [204]
        resend(frame)
        assert len(page.context.pages) == 1  # no other tab
        assert complaints == []


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


def test_with_cookies_blocked_a_page_says_so(live_server, settings, page):
    """The cookies of a local instance are not for frames of another site."""
    settings.BASE_URL = live_server.url
    with provider() as site:
        settings.PORTAL_FRAME_ANCESTORS = [site.origin]
        site.answer = framing(new_url())
        page.goto(site.origin)
        frame = page.frame_locator("iframe")
        frame.get_by_role("button", name="Open").click()
        expect(frame.get_by_text("your browser blocks the cookie")).to_be_visible()
