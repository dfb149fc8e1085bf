"""Operations of the admin in a real browser: by keyboard, without a complaint."""

import re

import pytest
from playwright.sync_api import expect

from gateway.models import GatewayKey
from tests.browser.staff import log_in
from tests.webhooks_core.factories import EndpointFactory, publish_event
from webhooks_core.models import Delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_a_delivery_is_resent_by_keyboard(live_server, page, complaints):
    EndpointFactory.create()
    publish_event()
    delivery = Delivery.objects.get()
    Delivery.objects.all().fail(error="over")
    operator = log_in(page, live_server.url)
    operator.goto(
        f"{live_server.url}/admin/webhooks_core/delivery/{delivery.pk}/change/"
    )
    expect(operator.get_by_text("curl --globoff --request POST")).to_be_visible()
    operator.get_by_role("button", name="Resend").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator(".messagelist")).to_contain_text("Resent.")
    assert Delivery.objects.filter(trigger="manual").count() == 1
    assert complaints == []


def test_a_key_is_made_copied_and_revoked_by_keyboard(live_server, page, complaints):
    operator = log_in(page, live_server.url)
    operator.goto(f"{live_server.url}/admin/gateway/gatewaykey/add/")
    operator.get_by_label("Tenant").fill("acme")
    operator.get_by_label("Principal").fill("robot")
    operator.keyboard.press("Enter")
    text = operator.locator("#secret").inner_text()
    assert re.fullmatch(r"gw_key_\w{36}", text)
    operator.locator("button[data-copy]").focus()
    operator.keyboard.press("Enter")
    assert operator.evaluate("getSelection().toString()") == text
    operator.get_by_role("link", name="To the gateway key").click()
    assert text not in operator.content()
    operator.goto(f"{live_server.url}/admin/gateway/gatewaykey/")
    operator.locator("input.action-select").check()
    operator.locator("select[name=action]").select_option("revoke_selected")
    operator.get_by_role("button", name="Go").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator(".messagelist")).to_contain_text("Revoked")
    assert GatewayKey.objects.get().revoked_at is not None
    assert complaints == []
