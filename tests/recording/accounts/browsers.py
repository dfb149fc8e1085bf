"""Browsers of people who log in by the page."""

from typing import Any

from django.test import Client

LOGIN, PASSWORD = "/accounts/login/", "correct horse"
BACKEND = "django.contrib.auth.backends.ModelBackend"


def log_in(
    name: str = "ada", password: str = PASSWORD, *, path: str = LOGIN, **meta: Any
) -> Client:
    """Return a browser after the first page of a login, whatever came of it."""
    client = Client(**meta)
    client.post(path, {"login": name, "password": password})
    return client


def logged_in(account: Any, **options: Any) -> Client:
    """Return a browser in which an account is logged in without a page."""
    client = Client(**options)
    client.force_login(account, BACKEND)
    return client


def is_logged_in(client: Client) -> bool:
    return client.get("/accounts").status_code == 200
