"""The header Content-Security-Policy of every response; its directives are in config/third_party.py."""

from __future__ import annotations

from functools import cached_property

from csp import middleware
from csp.constants import HEADER
from csp.utils import build_policy
from django.http import HttpRequest
from django.http.response import HttpResponseBase


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
