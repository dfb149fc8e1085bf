"""The WSGI entry: the whole site, for any WSGI server in place of `manage.py up`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.utils.module_loading import import_string

from webhooks_core.database import sessions

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

pages = get_wsgi_application()

# Every web process imports this module, and no worker and no command does. PostgreSQL cancels what
# takes longer, and compiles nothing: that takes several times as long as statements of pages.
LIMIT_MS = round(settings.WEB_STATEMENT_TIMEOUT_S * 1000)
sessions.limit(
    statement_timeout=LIMIT_MS,
    jit="off",
    idle_in_transaction_session_timeout=LIMIT_MS,
)

API_PATHS = ("/graphql", "/mcp", "/v1/")


class APIHandler(WSGIHandler):
    """Django's handler with the middleware of API_MIDDLEWARE, which has no hooks around views."""

    def load_middleware(self, is_async: bool = False) -> None:
        for hooks in ("view", "template_response", "exception"):
            setattr(self, f"_{hooks}_middleware", [])
        handler: Any = convert_exception_to_response(self._get_response)  # type: ignore[attr-defined] # of the base
        for name in reversed(settings.API_MIDDLEWARE):
            handler = convert_exception_to_response(import_string(name)(handler))
        self._middleware_chain = handler


api = APIHandler()


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Pass a request to Django; 10 to 22 % of a small API request is middleware of pages."""
    is_api = environ["PATH_INFO"].startswith(API_PATHS)
    return (api if is_api else pages)(environ, start_response)
