"""The WSGI entry: the whole site, for any WSGI server in place of `manage.py up`."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.utils.http import parse_header_parameters

from config import statements

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django = get_wsgi_application()

# Every web process imports this module, and no worker and no command does.
statements.limit(settings.WEB_STATEMENT_TIMEOUT_S)

# `charset*=latin-1''…`: these two headers have no such parameters, and on an unknown character
# set Django fails before any view can refuse the request.
EXTENDED_PARAMETER = re.compile(r"\*\s*=")
PARSED_HEADERS = ("CONTENT_TYPE", "HTTP_ACCEPT")
PROBE = b"name=%FF&"

API_PATHS = ("/graphql", "/mcp", "/v1/")
FOR_PAGES = frozenset(
    {
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "config.middleware.PageMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
    }
)


class APIHandler(WSGIHandler):
    """Django's handler for the addresses of APIs, without the middleware that only pages need.

    An API reads no cookie, so it has no session, no user of a session and no form to protect.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware of the settings but that of pages (docs/adr/0072)."""
        configured = settings.MIDDLEWARE
        settings.MIDDLEWARE = [name for name in configured if name not in FOR_PAGES]
        try:
            super().load_middleware(is_async=is_async)
        finally:
            settings.MIDDLEWARE = configured


api = APIHandler()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Pass a request to Django, without headers that it cannot parse."""
    for name in PARSED_HEADERS:
        if not _is_readable(environ.get(name, "")):
            del environ[name]
    is_api = environ["PATH_INFO"].startswith(API_PATHS)
    return (api if is_api else django)(environ, start_response)


def _is_readable(header: str) -> bool:
    if EXTENDED_PARAMETER.search(header):
        return False
    if "charset" not in header.lower():
        return True
    _, parameters = parse_header_parameters(header)
    return _decodes(parameters.get("charset", "utf-8"))


def _decodes(charset: str) -> bool:
    """Return False for a codec of Python that decodes no query: `hex`, `idna`, `undefined` ….

    Django takes its name for a character set, and decodes the query of every request by it.
    """
    try:
        codecs.lookup(charset)
    except LookupError:
        return True  # Django ignores it
    try:
        PROBE.decode(charset, "replace")
        PROBE.decode(charset)
    except UnicodeDecodeError:
        return True  # Django expects this one
    except (LookupError, UnicodeError):
        return False
    return True
