"""Operations of the admin in a real browser: by keyboard, without a complaint."""

import re

import pytest
from playwright.sync_api import expect

from gateway.models import GatewayKey
from tests.browser.login import open_admin

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("plain")]


def test_a_key_is_made_copied_and_revoked_by_keyboard(live_server, page, complaints):
    operator = open_admin(page, live_server.url)
    operator.goto(f"{live_server.url}/admin/gateway/gatewaykey/add/")
    operator.get_by_label("Tenant").fill("acme")
    operator.get_by_label("Principal").fill("robot")
    operator.keyboard.press("Enter")
    text = operator.locator("#secret").inner_text()
    assert re.fullmatch(r"gw_key_\w{36}", text)
    operator.locator("button[data-copy]").focus()
    operator.keyboard.press("Enter")
    assert operator.evaluate("getSelection().toString()") == text
    operator.reload()
    assert text not in operator.content()
    assert GatewayKey.objects.count() == 1
    operator.goto(f"{live_server.url}/admin/gateway/gatewaykey/")
    operator.locator("input.action-select").check()
    operator.locator("select[name=action]").select_option("revoke_selected")
    operator.get_by_role("button", name="Go").focus()
    operator.keyboard.press("Enter")
    expect(operator.locator(".messagelist")).to_contain_text("Revoked")
    assert GatewayKey.objects.get().revoked_at is not None
    assert complaints == []
