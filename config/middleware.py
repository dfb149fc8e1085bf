"""At every address: a count, the refusal of a foreign Host, and the Content-Security-Policy."""

from __future__ import annotations

from functools import cached_property

import structlog
from csp import middleware
from csp.constants import HEADER
from csp.utils import build_policy
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.utils.deprecation import MiddlewareMixin

from config import errors
from config.operations import metrics
from config.operations.logs import PROBES

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.stdlib.get_logger("signpost.http")


class MetricsMiddleware(MiddlewareMixin):
    """Counts every request by method, route (a pattern of the URL map) and status."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        # A client must not be able to create labels.
        method = request.method if request.method in METHODS else "other"
        route = f"/{request.resolver_match.route}" if request.resolver_match else "none"
        metrics.requests.labels(method, route, response.status_code).inc()
        return response


class HostMiddleware(CommonMiddleware):
    """Refuses a Host without a traceback; the addresses of probes accept every Host."""

    def process_request(  # type: ignore[override] # Django's redirects, this refuses
        self, request: HttpRequest
    ) -> HttpResponse | None:
        if request.path in PROBES:  # by IP address
            return None
        try:
            request.get_host()
        except DisallowedHost as error:
            host = request.META.get("HTTP_HOST", "")[:255]
            log.warning("Host is not allowed", host=host, path=request.path)
            return errors.bad_request(request, error)
        return None


class CSPMiddleware(middleware.CSPMiddleware):
    """Sends the policy of the settings, unless a view sets another one or uses a nonce.

    django-csp builds the header again for every response, which takes longer than a small
    GraphQL query.
    """

    @cached_property
    def policy(self) -> str:
        return build_policy()

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if hasattr(request, "_csp_nonce") or any(
            name.startswith("_csp") for name in vars(response)
        ):
            return super().process_response(request, response)
        response.headers.setdefault(HEADER, self.policy)
        return response
