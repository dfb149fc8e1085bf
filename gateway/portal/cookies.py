"""The cookies of the portal: they work in a frame of another site, and there alone.

Python has no `Partitioned` before 3.14, and Django's messages have a cookie that frames refuse.
"""

from __future__ import annotations

from collections.abc import Container
from http.cookies import Morsel

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.http import HttpResponse
from django.http.response import HttpResponseBase

PATH = "/portal"
SESSION, MESSAGES = "portal", "portal_messages"


class PartitionedMorsel(Morsel[str]):
    """A cookie that the browser keeps apart for each site whose pages frame ours."""

    def OutputString(self, attrs: Container[str] | None = None) -> str:  # noqa: N802 - the base's
        return f"{super().OutputString(attrs)}; Partitioned"


def name_of(name: str) -> str:
    """Return the name of a cookie. A browser accepts the prefix over https alone."""
    return f"__Secure-{name}" if settings.SESSION_COOKIE_SECURE else name


def write(
    response: HttpResponseBase, name: str, value: str, *, max_age: int | None = None
) -> None:
    """Set a cookie; `max_age` is in seconds, and 0 removes the cookie."""
    is_secure, key = settings.SESSION_COOKIE_SECURE, name_of(name)
    response.set_cookie(
        key,
        value,
        max_age=max_age,
        path=PATH,
        secure=is_secure,
        httponly=True,
        samesite="None" if is_secure else "Lax",
    )
    if is_secure:
        cookie, partitioned = response.cookies[key], PartitionedMorsel()
        partitioned.set(key, cookie.value, cookie.coded_value)
        partitioned.update(cookie)
        response.cookies[key] = partitioned


class MessageStorage(CookieStorage):
    """The messages of Django in a cookie of the portal."""

    @property
    def cookie_name(self) -> str:  # type: ignore[override] # it depends on a setting
        return name_of(MESSAGES)

    def _update_cookie(self, encoded_data: str, response: HttpResponse) -> None:
        max_age = None if encoded_data else 0
        write(response, MESSAGES, encoded_data or "", max_age=max_age)
