"""Refusals at every address: a Host that is not allowed, a method that no page accepts. Also the CSP header."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import structlog
from csp import middleware
from csp.constants import HEADER
from csp.utils import build_policy
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.utils.cache import add_never_cache_headers

from config import errors
from webhooks_core.web.parsers import EncodedBodyError, is_encoded

# Load balancers probe by IP address.
ANY_HOST = frozenset({"/healthz", "/readyz"})
PAGE_METHODS = ("GET", "HEAD", "POST")
# Owners' pages. Their views say that no cache keeps what they answer; here, what is answered
# before a view or in its place.
PRIVATE = ("/accounts", "/portal", "/oauth/authorize")

log = structlog.stdlib.get_logger("signpost.http")


class HostMiddleware(CommonMiddleware):
    """Refuses a Host without a traceback; the addresses of probes accept every Host."""

    def process_request(  # type: ignore[override] # Django's redirects, this refuses
        self, request: HttpRequest
    ) -> HttpResponse | None:
        if request.path in ANY_HOST:
            return None
        try:
            request.get_host()
        except DisallowedHost as error:
            host = request.META.get("HTTP_HOST", "")[:255]
            log.warning("Host is not allowed", host=host, path=request.path)
            return errors.bad_request(request, error)
        return None


class PageMiddleware:
    """Refuses methods and bodies that no page accepts: Django's admin would answer them like GET.

    Keeps the owners' pages out of caches.
    Views that are exempt from CSRF checks are APIs, which refuse these themselves.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(PRIVATE):
            add_never_cache_headers(response)
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], *_: Any
    ) -> HttpResponse | None:
        if getattr(view, "csrf_exempt", False):
            return None
        if request.method not in {*PAGE_METHODS, "OPTIONS"}:
            return HttpResponseNotAllowed(PAGE_METHODS)
        if request.method == "POST" and is_encoded(
            request.headers.get("Content-Encoding")
        ):
            error = EncodedBodyError()
            return HttpResponse(error.detail, status=415, headers=error.headers)
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
