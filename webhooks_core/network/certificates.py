"""The certificate authorities that outgoing TLS connections trust."""

from __future__ import annotations

import ssl
from functools import cache

from django.conf import settings


def client_context() -> ssl.SSLContext:
    """Return the context of outgoing connections: the system's authorities and EXTRA_CA_FILE's.

    Raises OSError (also as ssl.SSLError) if the file cannot be read or holds no certificate.
    """
    return _context(getattr(settings, "EXTRA_CA_FILE", ""))


@cache
def _context(extra_ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if extra_ca_file:
        context.load_verify_locations(extra_ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context
