"""Django's handler for the addresses of APIs, without the middleware that only pages need.

An API reads no cookie, so it has no session, no user of a session and no form to protect.
"""

from __future__ import annotations

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

API_PATHS = ("/graphql", "/mcp", "/v1/")
FOR_PAGES = frozenset(
    {
        "whitenoise.middleware.WhiteNoiseMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "recording.accounts.web_sessions.SessionUseMiddleware",
        "config.middleware.PageMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
        "axes.middleware.AxesMiddleware",
    }
)


class APIHandler(WSGIHandler):
    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware of the settings but that of pages (docs/adr/0072)."""
        configured = settings.MIDDLEWARE
        settings.MIDDLEWARE = [name for name in configured if name not in FOR_PAGES]
        try:
            super().load_middleware(is_async=is_async)
        finally:
            settings.MIDDLEWARE = configured
