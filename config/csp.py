"""The Content-Security-Policy of every answer, built once."""

from __future__ import annotations

from functools import cached_property

from csp import middleware
from csp.constants import HEADER
from csp.utils import build_policy
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class CSPMiddleware(middleware.CSPMiddleware):
    """Sends the settings' policy as it is, unless a view asks for another or a nonce was given.

    django-csp puts the header together anew for every answer, which takes longer than a small
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
