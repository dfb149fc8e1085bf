"""What the products' errors have in common: a base class, and one way from failure to answer.

A product gives them its own shape: it subclasses ApiError and hands its classes to Answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import structlog
from django.http import HttpRequest, JsonResponse
from rest_framework.response import Response

from webhooks_core.api.exception_mapping import failure_of

log = structlog.stdlib.get_logger(__name__)


class ApiError(Exception):
    """A failure that the caller is told about; the docstring's first line is the default text."""

    status_code = 500
    default_headers: Mapping[str, str] = {}

    def __init__(
        self, detail: Any = "", *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.detail = detail or (self.__doc__ or "").partition("\n")[0]
        self.headers = dict(headers or self.default_headers)
        super().__init__(self.detail)

    @property
    @abstractmethod
    def body(self) -> dict[str, Any]:
        """Return the answer's body, in the product's shape."""


E = TypeVar("E", bound=ApiError)


@dataclass(frozen=True)
class ErrorHandler(Generic[E]):
    """Turns whatever was raised into an error of one product, and that into an answer."""

    base: type[E]
    kinds: Mapping[int, type[E]]
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, base: type[E], *, headers: Mapping[str, str] | None = None) -> Self:
        """Answer with the classes made of `base` so far: one for each status.

        Each that `failure_of` knows must be among them, and 500. `headers` are what the
        product's views add to every answer, besides `Cache-Control`.
        """
        kinds = {kind.status_code: kind for kind in base.__subclasses__()}
        return cls(base, kinds, {"Cache-Control": "no-store", **(headers or {})})

    def translate(self, error: BaseException | None) -> E | None:
        """Return what the caller is told about an exception; None if it is unforeseen."""
        if isinstance(error, self.base):
            return error
        failure = failure_of(error)
        if failure is None:
            return None
        return self.kinds[failure.status](failure.message, headers=failure.headers)

    def handle(self, error: Exception, _: dict[str, Any]) -> Response | None:
        """Answer an exception of a DRF view. The unforeseen goes on to Django, which logs it."""
        told = self.translate(error)
        if told is None:
            return None
        if told.status_code == 503:
            log.error("dependency unavailable", exc_info=error)
        return Response(told.body, status=told.status_code, headers=told.headers)

    def response_for(
        self, _: HttpRequest, status: int, error: BaseException | None
    ) -> JsonResponse:
        """Answer what failed outside our views: unknown addresses, middleware, crashes.

        `status` (400, 404 or 500) counts unless the exception has an answer of its own.
        """
        answer = response(self.translate(error) or self.kinds[status]())
        for name, value in self.headers.items():
            answer.headers[name] = value
        return answer


def response(error: ApiError) -> JsonResponse:
    """Return an error as a plain Django response, for views outside DRF."""
    return JsonResponse(error.body, status=error.status_code, headers=error.headers)
