"""Structured logs, with a request id and a duration, without query strings and secrets."""

from __future__ import annotations

import logging
import logging.config
import re
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from uuid import uuid4

import structlog
from django.http import HttpRequest, HttpResponse
from structlog.contextvars import bound_contextvars

# Addresses that are secrets, whoever logs them: a redirect to https comes before any view.
PORTAL_TOKEN = re.compile(r"(/portal/open/)[^/?#\s]+")
PROBES = frozenset({"/healthz", "/readyz"})  # not logged while all is well
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)

# These loggers write codes and tokens at DEBUG.
NEVER_BELOW_WARNING = ("oauthlib", "oauth2_provider", "requests_oauthlib")


def without_tokens(
    _: Any, __: str, record: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace the token of a portal link in the text and the path of a record."""
    for name in ("event", "path"):
        text = record.get(name)
        if isinstance(text, str) and "/portal/open/" in text:
            record[name] = PORTAL_TOKEN.sub(r"\1…", text)
    return record


SHARED: list[Any] = [
    without_tokens,
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]

log = structlog.stdlib.get_logger("signpost.http")


def configure(options: Mapping[str, Any]) -> None:
    """Send the standard library's and structlog's records through one formatter to stderr.

    The options are those of the setting LOGGING: `level`, and `as_json` for lines of JSON.
    """
    level, as_json = options["level"], options["as_json"]
    renderer: Any = structlog.processors.JSONRenderer() if as_json else ConsoleLines()
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "one": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": SHARED,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        renderer,
                    ],
                }
            },
            "handlers": {
                "stderr": {"class": "logging.StreamHandler", "formatter": "one"}
            },
            "root": {"handlers": ["stderr"], "level": level},
            "loggers": {
                # RequestLogMiddleware logs every status.
                "django.request": {"level": "ERROR"},
                "django-q": {"level": "WARNING"},
                # It logs every request, and texts of clients.
                "mcp": {"level": "WARNING"},
                **{name: {"level": "WARNING"} for name in NEVER_BELOW_WARNING},
                # Why a client's metadata document was refused.
                "oauth2_provider.cimd": {"level": max(level, logging.INFO)},
            },
        }
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class ConsoleLines:
    """Renders a record for a terminal: what a stranger sent neither controls it nor adds a line."""

    def __init__(self) -> None:
        self._render = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0)

    def __call__(self, logger: Any, name: str, record: MutableMapping[str, Any]) -> str:
        record["event"] = printable(str(record["event"]))
        return printable(self._render(logger, name, record), keep="\n")


def printable(text: str, *, keep: str = "") -> str:
    """Return a text with every unprintable character as an escape, but those to keep."""
    if text.isascii() and text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode()
        for c in text
    )


class RequestLogMiddleware:
    """Gives every request an id, returns it in `X-Request-Id`, and logs one line per request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-Id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]
        started = time.perf_counter()
        with bound_contextvars(request_id=request_id):
            response = self.get_response(request)
            if request.path not in PROBES or response.status_code >= 400:
                log.info(
                    "request",
                    method=request.method,
                    path=_loggable_path(request),
                    status=response.status_code,
                    ms=round((time.perf_counter() - started) * 1000, 1),
                )
        response["X-Request-Id"] = request_id
        return response


def _loggable_path(request: HttpRequest) -> str:
    """Return the path without the secret of a link that was sent by e-mail."""
    match = request.resolver_match
    token = match.kwargs.get("token") if match else None
    return request.path.replace(token, "…") if token else request.path
