"""The WSGI entry: everything, for a WSGI server in place of `up` or beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django = get_wsgi_application()

# Every web process imports this module, and no worker and no command does.
from config import statements  # noqa: E402 - after the settings are there

statements.limit(settings.WEB_STATEMENT_TIMEOUT_S)

# `charset*=latin-1''…`: such parameters have no place in these two headers, and Django fails on
# those in an unknown character set before any view can refuse the request.
EXTENDED_PARAMETER = re.compile(r"\*\s*=")
PARSED = ("CONTENT_TYPE", "HTTP_ACCEPT")


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Hand a request to Django, without headers that it cannot read."""
    for name in PARSED:
        if EXTENDED_PARAMETER.search(environ.get(name, "")):
            del environ[name]
    return django(environ, start_response)
