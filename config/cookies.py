"""The cookie of Django's messages, named with the prefix of the other cookies."""

from __future__ import annotations

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


class PrefixedCookieStorage(CookieStorage):
    cookie_name = f"{settings.COOKIE_PREFIX}messages"


class MessageStorage(FallbackStorage):
    """Django's default storage with that cookie."""

    storage_classes = (PrefixedCookieStorage, SessionStorage)
