"""The gateway's admin in a real browser: keys are made there, pages fit any width and theme."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from gateway import keys, policy, static_subscriptions
from gateway.configuration.shapes import (
    Configuration,
    StaticSubscription,
    WebhookSettings,
)
from gateway.identity import Caller
from gateway.models import Document, GatewayKey, PolicyDecision
from tests.browser.staff import log_in
from tests.docs.filling import fill_products
from tests.gateway.client import Api
from tests.webhooks_core.admin.looking import NOWHERE, SCRIPT
from webhooks_core.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(live_server, page):
    """A page of an operator who has logged in."""
    return log_in(page, live_server.url)


@pytest.fixture
def addresses() -> list[str]:
    """Every page of the gateway, with long and hostile content."""
    key = keys.create(tenant="acme", principal="p" * 128, name=SCRIPT).key
    decision = policy.record_denial(
        caller=Caller("t" * 128, "ada"),
        action="chat",
        resource="model:" + "x" * 200,
        reason=SCRIPT,
    )
    Api(tenant="acme", principal="ada").ingest("x" * 9000 + SCRIPT, title="x" * 255)
    declared = StaticSubscription("acme", NOWHERE, "hush")
    static_subscriptions.sync(Configuration(WebhookSettings(subscriptions=(declared,))))
    pages = {
        "gateway/gatewaykey": key,
        "gateway/policydecision": decision,
        "gateway/document": Document.objects.get(),
        "webhooks_core/endpoint": Endpoint.objects.get(),
    }
    lists = [f"{name}/" for name in pages]
    changes = [f"{name}/{row.pk}/change/" for name, row in pages.items()]
    return [*lists, *changes, "gateway/gatewaykey/add/"]


LISTS = [
    *("gateway/gatewaykey", "gateway/policydecision", "gateway/document"),
    *("gateway_chat/usageday", "gateway_chat/usagerecord", "catalog/book"),
    *("recording/recording", "recording/personaltoken", "recording_oauth/application"),
    *("oauth2_provider/accesstoken", "oauth2_provider/refreshtoken"),
]


def test_no_list_cuts_a_column_beside_the_menu_and_the_filters(live_server, operator):
    fill_products(2)
    operator.set_viewport_size({"width": 1280, "height": 800})
    for name in LISTS:
        operator.goto(f"{live_server.url}/admin/{name}/")
        wide, shown = operator.locator(".results").evaluate(
            "it => [it.scrollWidth, it.clientWidth]"
        )
        assert (name, wide) == (name, shown)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_complains_or_is_wider_than_a_telephone(
    live_server, operator, complaints, addresses, scheme
):
    operator.emulate_media(color_scheme=scheme)
    for width in (1280, 390):
        operator.set_viewport_size({"width": width, "height": 800})
        for address in addresses:
            operator.goto(f"{live_server.url}/admin/{address}")
            wide = operator.evaluate("document.documentElement.scrollWidth")
            assert (address, wide) == (address, width)
    assert complaints == []
    assert PolicyDecision.objects.count() == 1


def test_a_key_is_made_copied_and_revoked_by_keyboard(
    live_server, operator, complaints
):
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
    operator.get_by_role("button", name="Revoke this key").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator(".messagelist")).to_contain_text("Revoked")
    assert GatewayKey.objects.get().revoked_at is not None
    assert complaints == []
