"""The home page in Chromium: no complaint, nothing from elsewhere, no sideways scrolling."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from webhooks_core import tasks

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_home_page_opens_without_a_complaint(
    page: Page, live_server, complaints, tmp_path, scheme, width
):
    tasks.sweep()
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_server.url)
    expect(page.get_by_role("heading", name="State")).to_be_visible()
    assert page.evaluate(SIDEWAYS) == 0
    assert complaints == []
    page.screenshot(path=tmp_path / "home.png", full_page=True)
