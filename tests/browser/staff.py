"""An operator who logs in to the admin."""

from playwright.sync_api import Page

from tests.factories import UserFactory


def log_in(page: Page, origin: str) -> Page:
    """Make a superuser and log them in; return their page."""
    UserFactory.create(superuser=True, username="ada", password="a-long-password")
    page.goto(f"{origin}/admin/")
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password").fill("a-long-password")
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Failing endpoints").wait_for()
    return page
