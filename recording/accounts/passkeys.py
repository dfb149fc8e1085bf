"""Where passkeys (WebAuthn) can be used."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings


def are_served() -> bool:
    """Return True if browsers allow passkeys for `BASE_URL`: they need a name, not an address."""
    try:
        ip_address(urlsplit(settings.BASE_URL).hostname or "")
    except ValueError:
        return True
    return False
