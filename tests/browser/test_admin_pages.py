"""The webhooks' admin in a real browser: nothing foreign, no complaint, at any width or theme."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.staff import log_in
from tests.receiver import receiver
from tests.webhooks_core.admin.looking import SCRIPT
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


@pytest.fixture
def operator(live_server, page):
    """A page of an operator who has logged in, and deliveries to look at."""
    with receiver(200, 500) as server:
        server.answer = SCRIPT.encode()
        EndpointFactory.create(url=server.url, description=SCRIPT)
        publish_event()
        publish_event()
        dispatch()
    return log_in(page, live_server.url)


def addresses() -> list[str]:
    delivery, target = Delivery.objects.latest("pk"), Endpoint.objects.get()
    return [
        "delivery/",
        f"delivery/{delivery.pk}/change/",
        "endpoint/",
        f"endpoint/{target.pk}/change/?hours=24",
        f"endpoint/{target.pk}/rotate-secret/confirm/",
        "dispatcherlease/dashboard/",
        "dispatcherlease/",
        "event/",
        "event/catalogue/",
        f"event/{delivery.event_id}/change/",
    ]


def test_no_list_cuts_a_column_beside_the_menu_and_the_filters(live_server, operator):
    Endpoint.objects.update(url=f"https://{'a-long-name.' * 6}example/{'x' * 90}")
    operator.set_viewport_size({"width": 1280, "height": 800})
    for address in ("delivery/", "endpoint/", "event/", "dispatcherlease/"):
        operator.goto(f"{live_server.url}/admin/webhooks_core/{address}")
        wide, shown = operator.locator(".results").evaluate(
            "it => [it.scrollWidth, it.clientWidth]"
        )
        assert (address, wide) == (address, shown)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_complains_or_is_wider_than_a_telephone(
    live_server, operator, complaints, scheme
):
    operator.emulate_media(color_scheme=scheme)
    for width in (1280, 390):
        operator.set_viewport_size({"width": width, "height": 800})
        for address in addresses():
            operator.goto(f"{live_server.url}/admin/webhooks_core/{address}")
            wide = operator.evaluate("document.documentElement.scrollWidth")
            assert (address, wide) == (address, width)
    assert complaints == []


def test_a_delivery_is_resent_and_its_command_copied_by_keyboard(
    live_server, operator, complaints
):
    delivery = Delivery.objects.latest("pk")
    Delivery.objects.filter(pk=delivery.pk).fail(error="over")
    operator.goto(
        f"{live_server.url}/admin/webhooks_core/delivery/{delivery.pk}/change/"
    )
    button = operator.locator("button[data-copy]")
    button.focus()
    operator.keyboard.press("Enter")
    selected = operator.evaluate("getSelection().toString()")
    assert selected.startswith("curl --globoff --request POST")
    operator.get_by_role("button", name="Resend").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator(".messagelist")).to_contain_text("Queued again as")
    assert Delivery.objects.filter(trigger="replay").count() == 1
    assert complaints == []
