"""An owner's webhooks in Chromium: subscribed, broken, understood, repaired and resent."""

import re
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.login import log_in
from tests.factories import UserFactory
from tests.receiver import Receiver, receiver
from tests.running import PATIENCE_S, until
from tests.webhooks_core.engine import running_dispatcher
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

pytestmark = [
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(params=["scripts", "no scripts"])
def has_scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "scripts")


@pytest.fixture
def page(has_scripts: bool, browser: Browser, db: None) -> Iterator[Page]:
    with browser.new_context(java_script_enabled=has_scripts) as context:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        yield page


def see(page: Page, shown: Locator, *, has_scripts: bool) -> None:
    """Wait until something is shown: a page without scripts is loaded again."""
    end = time.monotonic() + PATIENCE_S
    while not has_scripts and not shown.count() and time.monotonic() < end:
        page.wait_for_timeout(100)
        page.reload()
    expect(shown.first).to_be_visible()


def happen(owner: str, count: int) -> list[Event]:
    return [
        publish(
            profile="recording",
            owner=owner,
            event_type="summary.completed",
            data={"audio_id": f"aud_{number}"},
        )
        for number in range(count)
    ]


def test_an_owner_subscribes_finds_a_failure_repairs_it_and_resends_what_was_missed(
    live_server, page, complaints, has_scripts
):
    account = UserFactory.create(username="ada", password="a-long-password")
    owner = str(account.pk)
    with receiver(204) as server, running_dispatcher():
        subscribe(page, f"{live_server.url}/accounts/webhooks", server, has_scripts)
        server.answer, server.statuses[:] = b"no such table: orders", [500]
        happen(owner, 20)
        until(
            lambda: Endpoint.objects.filter(status=Endpoint.Status.DISABLED).exists(),
            "the endpoint is disabled",
        )
        happen(owner, 2)
        find_the_failure(page, f"{live_server.url}/accounts")
        server.statuses[:] = [204]
        repair(page, has_scripts)
    assert len(server.requests) == 2 + 20 + 20 + 2
    assert not Delivery.objects.exclude(status=Delivery.Status.DELIVERED).exists()
    assert complaints == []


def subscribe(page: Page, address: str, server: Receiver, has_scripts: bool) -> None:
    page.goto(address)
    log_in(page)
    expect(page.get_by_text("You have no endpoints yet.")).to_be_visible()
    page.get_by_role("link", name="Add an endpoint").click()
    page.get_by_label("URL").fill(server.url)
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_contain_text("whsec_")
    headline = "Delivered: your server answered 204"
    arrived = page.locator("#state").get_by_text("Delivered")
    see(page, arrived, has_scripts=has_scripts)
    with page.expect_navigation():
        page.get_by_role("link", name="webhook.ping").click()
    shown = page.get_by_role("heading", name=headline)
    see(page, shown, has_scripts=has_scripts)
    page.goto(address)
    page.get_by_role("link", name="/hook").click()
    page.get_by_role("button", name="Send a test").click()
    shown = page.get_by_role("heading", name=headline)
    see(page, shown, has_scripts=has_scripts)
    expect(page.locator("dl")).to_contain_text("Delivered after 1 of at most 6")
    expect(page).to_have_title(re.compile("^Delivered: webhook.ping"))


def find_the_failure(page: Page, address: str) -> None:
    page.goto(f"{address}/webhooks")
    expect(page.get_by_text("Disabled")).to_be_visible()
    page.get_by_role("link", name="/hook").click()
    expect(page.get_by_text("no such table: orders").first).to_be_visible()
    expect(page.get_by_text("2 events were not sent")).to_be_visible()
    page.get_by_role("link", name="Deliveries", exact=True).click()
    page.get_by_role("link", name="Waiting").click()
    page.locator("li.row").get_by_role("link").first.click()
    headline = "Not delivered yet: your server answered 500."
    expect(page.get_by_role("heading", name=headline)).to_be_visible()
    expect(page.get_by_text("Waits: the endpoint is disabled.")).to_be_visible()
    expect(page.get_by_label("Response text")).to_have_text("no such table: orders")
    expect(page.get_by_role("heading", name="What to do")).to_be_visible()


def repair(page: Page, has_scripts: bool) -> None:
    page.get_by_role("link", name="127.0.0.1").first.click()
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_text("Enabled: what waits is sent now.")).to_be_visible()
    page.get_by_role("button", name="Resend them").first.click()
    expect(page.get_by_text("2 events will be sent")).to_be_visible()
    until(lambda: not Delivery.objects.pending().exists(), "all is delivered")
    page.reload()
    see(page, page.get_by_text("Healthy"), has_scripts=has_scripts)
