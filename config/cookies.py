"""The cookie of Django's messages, named with the prefix of the other cookies."""

from __future__ import annotations

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage


class PrefixedCookieStorage(CookieStorage):
    cookie_name = f"{settings.COOKIE_PREFIX}messages"
