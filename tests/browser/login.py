"""How people log in with a browser."""

from playwright.sync_api import Page

from tests.factories import UserFactory

PASSWORD = "a-long-password"


def log_in(page: Page, password: str = PASSWORD, *, name: str = "ada") -> None:
    """Fill in the login form, and send it by keyboard."""
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


def open_admin(page: Page, origin: str) -> Page:
    """Make a superuser and log them in to the admin; return their page."""
    UserFactory.create(superuser=True, username="ada", password=PASSWORD)
    page.goto(f"{origin}/admin/")
    log_in(page)
    page.get_by_role("link", name="Failing endpoints").wait_for()
    return page
