"""A real browser against the live server: Debian's Chromium, offline, under the strict CSP."""

import shutil
from collections.abc import Iterator

import pytest
from django.db import connections
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests.running import PATIENCE_S
from tests.tools import require

expect.set_options(timeout=1000 * PATIENCE_S)

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What a request ends with when the page is left before its answer has come.
LEFT = "net::ERR_ABORTED"
OURS = ("http://localhost:", "http://127.0.0.1:", "http://[::1]:", "data:", "blob:")


@pytest.fixture(scope="module")
def browser(django_db_setup) -> Iterator[Browser]:
    """The browser of one file's tests.

    A browser of the whole session would keep an event loop in the thread of every later test:
    their asyncio.run() would fail.
    """
    require("chromium")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # The driver's event loop makes Django think that the test is a coroutine.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, db) -> Iterator[Page]:
    """A page without cookies or a cache of earlier tests."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        yield page
    connections.close_all()  # under an event loop Django opens connections of its own


@pytest.fixture
def complaints(page: Page) -> list[str]:
    """What the page complains of: console errors (the CSP's too), exceptions, requests that are
    foreign or fail. A request that the browser aborts because the test goes on is no complaint.
    """
    seen: list[str] = []

    def hear(message):
        if message.type == "error":
            seen.append(message.text)

    def watch(request):
        if not request.url.startswith(OURS):
            seen.append(f"foreign: {request.url}")

    def note_failure(request: Request) -> None:
        if request.failure != LEFT:
            seen.append(f"failed: {request.url}: {request.failure}")

    page.on("console", hear)
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("requestfailed", note_failure)
    page.on("request", watch)
    return seen
