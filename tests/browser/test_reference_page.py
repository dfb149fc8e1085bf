"""The API reference in Chromium: it shows every operation, offline, under the strict CSP."""

import json

from django.conf import settings
from playwright.sync_api import Page, expect

METHODS = {"get", "post", "put", "patch", "delete"}


def operations() -> int:
    document = json.loads((settings.BASE_DIR / "docs/api/openapi.json").read_text())
    return sum(len(METHODS & set(item)) for item in document["paths"].values())


def test_the_reference_shows_every_operation_without_a_complaint(
    page: Page, live_server, complaints, tmp_path
):
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 320, "height": 900})
    page.goto(f"{live_server.url}/docs")
    blocks = page.locator("#swagger-ui .opblock")
    expect(blocks.first).to_be_visible()
    # Outgoing webhooks have blocks too.
    assert blocks.count() >= operations()
    blocks.first.locator(".opblock-summary-control").click()
    expect(blocks.first.locator(".opblock-body")).to_be_visible()
    body = page.locator("body")
    expect(body).to_have_css("background-color", "rgb(15, 20, 25)")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    expect(blocks.last).to_be_visible()
    expect(body).to_have_css("background-color", "rgb(245, 246, 248)")
    page.screenshot(path=tmp_path / "docs.png")
    assert complaints == []


def test_a_request_can_be_tried_out(page: Page, live_server, complaints):
    page.goto(f"{live_server.url}/docs")
    block = page.locator("#swagger-ui .opblock-get").first
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    with page.expect_response(lambda response: "/v1/" in response.url) as seen:
        block.get_by_role("button", name="Execute").click()
    assert seen.value.status == 401
    expect(block.locator(".live-responses-table").first).to_be_visible()
    assert [complaint for complaint in complaints if "401" not in complaint] == []
