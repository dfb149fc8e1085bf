"""The pictures of docs/connect.md: login, consent and connected apps of one application.

`PICTURES=docs/images make test-all ARGS=tests/browser/test_connect_pictures.py` takes them again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.test import Client
from playwright.sync_api import expect

from recording.oauth import client_documents
from tests.browser.test_oauth_pages import account, callback, listen, log_in
from tests.recording.oauth.flows import App, query_of

__all__ = ["account", "callback", "listen"]  # fixtures
CLIENT_ID = "https://assistant.example/mcp/client.json"


@pytest.fixture
def app(monkeypatch, callback) -> App:
    """A client that identifies itself by a document of its host."""
    document = {
        "client_id": CLIENT_ID,
        "client_name": "Assistant",
        "redirect_uris": [callback.address],
    }
    monkeypatch.setattr(
        client_documents.DocumentFetcher, "fetch", lambda *_: (document, 3600)
    )
    return App(Client(), CLIENT_ID, redirect=callback.address)


def test_consent_and_connected_apps_name_the_verified_host(
    live_server, page, app, account, callback, tmp_path
):
    folder = Path(os.environ.get("PICTURES", tmp_path))
    page.set_viewport_size({"width": 800, "height": 560})
    page.goto(live_server.url + app.address())
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.screenshot(path=folder / "connect-login.png")
    log_in(page)
    expect(page.get_by_text("Verified: assistant.example")).to_be_visible()
    page.screenshot(path=folder / "connect-consent.png", full_page=True)
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url("**/callback?*")
    app.exchange(query_of(callback.seen[0])["code"])
    page.goto(live_server.url + "/accounts/clients")
    expect(
        page.get_by_text("Published by assistant.example (verified)")
    ).to_be_visible()
    page.screenshot(path=folder / "connect-clients.png")
