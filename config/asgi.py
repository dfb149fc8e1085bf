"""The ASGI entry that `manage.py up` serves: one port for everything.

Synchronous Django runs in a fixed pool of threads, so that each thread keeps its database
connection: Django's own ASGI handler takes a fresh thread, and a fresh connection, per request.
"""

from __future__ import annotations

from typing import Any, cast

from a2wsgi import WSGIMiddleware
from django.conf import settings

from config.wsgi import application as wsgi_application

application = WSGIMiddleware(
    cast("Any", wsgi_application), workers=settings.WEB_THREADS
)
