"""What all endpoints for machines share: methods, throttle, CORS, errors that are always JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import structlog
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from redis.exceptions import RedisError

from recording import cors
from recording.oauth import throttles
from recording.oauth.errors import (
    MethodNotAllowedError,
    OAuthError,
    ServerError,
    UnavailableError,
    respond,
)

log = structlog.stdlib.get_logger("signpost.oauth")

View = Callable[..., HttpResponse]


def endpoint(*methods: str, throttle: str = "") -> Callable[[View], View]:
    """Make a view answer every failure in the shape of RFC 6749 section 5.2, and any site."""

    def decorate(view: View) -> View:
        @csrf_exempt
        @sensitive_post_parameters()
        @wraps(view)
        def answer(request: HttpRequest, **kwargs: str) -> HttpResponse:
            if request.method in methods:
                return cors.with_cors(_answer(view, request, throttle, kwargs))
            allowed = (*methods, "OPTIONS")
            if request.method == "OPTIONS":
                told = respond(status=204, headers={"Allow": ", ".join(allowed)})
                return cors.with_cors(told, methods=methods)
            return cors.with_cors(MethodNotAllowedError(allowed).response())

        return answer

    return decorate


def _answer(
    view: View, request: HttpRequest, throttle: str, kwargs: dict[str, str]
) -> HttpResponse:
    try:
        if throttle:
            throttles.check(request, throttle)
        return view(request, **kwargs)
    except OAuthError as error:
        return error.response()
    except (OperationalError, InterfaceError, RedisError):
        log.exception("dependency unavailable")
        return UnavailableError(retry_after=5).response()
    except Exception:
        # Clients of OAuth expect JSON, always.
        log.exception("oauth request failed")
        return ServerError().response()
