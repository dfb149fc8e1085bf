"""The base of the products' errors, and the handler that turns exceptions into responses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import structlog
from django.http import HttpRequest, JsonResponse
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from webhooks_core.web.exception_mapping import failure_of

log = structlog.stdlib.get_logger(__name__)


class ApiError(APIException):
    """An error response; the first line of a subclass's docstring is its default message."""

    detail: Any
    default_headers: Mapping[str, str] = {}

    def __init__(
        self, detail: Any = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.detail = detail or (self.__doc__ or "").partition("\n")[0]
        self.headers = dict(headers or self.default_headers)

    @property
    @abstractmethod
    def body(self) -> dict[str, Any]:
        """Return the body of the response, in the product's shape."""


E = TypeVar("E", bound=ApiError)


@dataclass(frozen=True)
class ErrorHandler(Generic[E]):
    """Turns exceptions into a product's errors, and these into responses.

    `kinds` has 500 and every status of `failure_of`. `headers` are those of every response of the
    product, besides `Cache-Control`.
    """

    base: type[E]
    kinds: Mapping[int, type[E]]
    headers: Mapping[str, str] = field(default_factory=dict)

    def translate(self, error: BaseException | None) -> E | None:
        """Return the product's error for an exception; None for an unexpected one."""
        if isinstance(error, self.base):
            return error
        failure = failure_of(error)
        if failure is None:
            return None
        return self.kinds[failure.status](failure.message, headers=failure.headers)

    def handle(self, error: Exception, context: Mapping[str, Any]) -> Response | None:
        """Respond to an exception of a DRF view; Django handles and logs an unexpected one."""
        api_error = self.translate(error)
        if api_error is None:
            return None
        if api_error.status_code == 405:
            api_error.headers["Allow"] = ", ".join(context["view"].allowed_methods)
        if api_error.status_code == 503:
            log.error("dependency unavailable", exc_info=error)
        return Response(
            api_error.body, status=api_error.status_code, headers=api_error.headers
        )

    def response_for(
        self, _: HttpRequest, status: int, error: BaseException | None
    ) -> JsonResponse:
        """Respond to an error outside our views: an unknown address, a middleware, a crash.

        `status` (400, 404 or 500) applies unless the exception maps to an error.
        """
        api_error = response(self.translate(error) or self.kinds[status]())
        for name, value in {"Cache-Control": "no-store", **self.headers}.items():
            api_error.headers[name] = value
        return api_error


def response(error: ApiError) -> JsonResponse:
    """Return an error as a plain Django response, for views outside DRF."""
    return JsonResponse(error.body, status=error.status_code, headers=error.headers)
