"""What the endpoints for clients share: methods, throttle, CORS, errors as JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import structlog
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from oauthlib.oauth2 import OAuth2Error
from redis.exceptions import RedisError

from recording import cors
from recording.oauth import throttles
from recording.oauth.errors import (
    MethodNotAllowedError,
    ServerError,
    UnavailableError,
    error_response,
    respond,
)
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.oauth")

View = Callable[..., HttpResponse]


def oauth_view(*methods: str, throttle: str = "") -> Callable[[View], View]:
    """Return a decorator for a view that scripts of any site may call.

    Every failure becomes JSON in the shape of RFC 6749 section 5.2.
    """
    allowed = (*methods, "OPTIONS")

    def decorate(view: View) -> View:
        @csrf_exempt
        @sensitive_post_parameters()
        @wraps(view)
        def respond_or_refuse(request: HttpRequest, **kwargs: str) -> HttpResponse:
            if request.method == "OPTIONS":
                response = respond(status=204, headers={"Allow": ", ".join(allowed)})
                return cors.with_cors(response, methods=methods)
            if request.method not in methods:
                return cors.with_cors(error_response(MethodNotAllowedError(allowed)))
            try:
                if throttle:
                    throttles.check(request, throttle)
                response = view(request, **kwargs)
            except Exception as error:  # noqa: BLE001 - clients expect JSON in any case
                response = error_response(_oauth_error(error))
            return cors.with_cors(response)

        return respond_or_refuse

    return decorate


def _oauth_error(error: Exception) -> OAuth2Error:
    """Return an exception as an error that the client may see; log any other kind."""
    if isinstance(error, OAuth2Error):
        return error
    if is_outage(error) or isinstance(error, RedisError):
        log.error("dependency unavailable", exc_info=error)
        return UnavailableError()
    log.error("oauth request failed", exc_info=error)
    return ServerError()
