"""The bases of every JSON view: one order of checks, one error shape per product, JSON as response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import orjson
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.throttling import BaseThrottle, SimpleRateThrottle
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from webhooks_core.web.errors import ErrorHandler
from webhooks_core.web.pages import NoQuery, read_query
from webhooks_core.web.parsers import EncodedBodyError, StrictJSONParser, is_encoded


class JSONRenderer(BaseRenderer):
    """Renders JSON; None is an empty body."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)


class IgnoreAccept(BaseContentNegotiation):
    """Selects the parser by media type, and JSON for every response, for any `Accept` header."""

    def select_parser(
        self, request: Request, parsers: Iterable[BaseParser]
    ) -> BaseParser | None:
        media_type = request.content_type.partition(";")[0].strip().lower()
        matches = (parser for parser in parsers if parser.media_type == media_type)
        return next(matches, None)

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return JSONRenderer(), JSONRenderer.media_type


Handler = TypeVar("Handler", bound=Callable[..., Any])
Shape = type[BaseSerializer[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a handler declares of itself, for its view and for the OpenAPI document.

    `response` is a serializer, or the name of the attribute of the view that has one; None is an
    empty answer. `errors` are statuses besides those that follow from the rest. `throttle` names a
    rate. A handler with a `query` refuses other parameters.
    """

    summary: str = ""
    name: str = ""
    request: Shape | None = None
    response: Any = None
    status: int | tuple[int, ...] = 200
    errors: tuple[int, ...] = ()
    query: Shape | None = None
    throttle: str = ""

    @property
    def statuses(self) -> tuple[int, ...]:
        return (self.status,) if isinstance(self.status, int) else self.status


def route(**fields: Any) -> Callable[[Handler], Handler]:
    """Return a decorator of a handler that declares its Route."""

    def declare(handler: Handler) -> Handler:
        handler.route = Route(**fields)  # type: ignore[attr-defined]
        return handler

    return declare


class ProductAPIView(APIView):
    """Checks method (405), authentication (401) and throttle (429), then runs the handler."""

    product: ClassVar[str]
    error_handler: ClassVar[ErrorHandler]
    error_serializer: ClassVar[Shape]
    parser_classes: Sequence[type[BaseParser]] = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = IgnoreAccept
    metadata_class = None
    # Of a product, in place of what the handlers of a base declare.
    routes: ClassVar[Mapping[str, Route]] = {}

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {"Cache-Control": "no-store"}

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return self.error_handler.handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in self.allowed_methods:
            raise exceptions.MethodNotAllowed(request.method or "")
        if request.method != "OPTIONS":  # anybody may read the methods of a route
            super().initial(request, *args, **kwargs)

    @property
    def route(self) -> Route:
        """The route of the handler that this request, or this part of the document, is about."""
        name = getattr(self, "action", None) or str(self.request.method).lower()
        declared: Route = getattr(getattr(self, name, None), "route", Route())
        return self.routes.get(name, declared)

    def throttle_for(self, rate: str) -> BaseThrottle:
        """Return the throttle of a rate of the product."""
        raise NotImplementedError

    def get_throttles(self) -> list[BaseThrottle]:
        rate = self.route.throttle
        return [self.throttle_for(rate)] if rate else super().get_throttles()

    @property
    def response_shape(self) -> Any:
        """The serializer of the route's response."""
        shape = self.route.response
        return getattr(self, shape) if isinstance(shape, str) else shape

    def respond(self, result: Any) -> Response:
        """Return the response of the route, with the first of its statuses."""
        return Response(self.response_shape(result).data, self.route.statuses[0])

    def read_query(self) -> dict[str, Any]:
        """Return the parameters of the route's query. Raises ValidationError."""
        return read_query((self.route.query or NoQuery)(), self.request)

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return Response(status=204, headers={"Allow": ", ".join(self.allowed_methods)})

    def get_body(self) -> dict[str, Any]:
        """Return the request's body, which must be a JSON object.

        Raises ParseError, PayloadTooLargeError, EncodedBodyError or UnsupportedMediaType.
        """
        if is_encoded(self.request.headers.get("Content-Encoding")):
            raise EncodedBodyError
        if self.request.stream is None:
            raise exceptions.ParseError(
                "The body is empty: send a JSON object, and its Content-Length."
            )
        body = self.request.data
        if not isinstance(body, dict):
            raise exceptions.ParseError("The body must be a JSON object.")
        return body

    def read_body(self, serializer: Shape | None = None) -> Any:
        """Return a serializer, by default the route's, with a valid body.

        Raises ValidationError, and as `get_body`.
        """
        shape = serializer or self.route.request
        assert shape is not None  # noqa: S101 - a fault of the route
        read = shape(data=self.get_body())
        read.is_valid(raise_exception=True)
        return read


class ProductViewSet(ProductAPIView, GenericViewSet[Any]):
    """Routes actions to use cases. A product's `get_object` raises its own 404."""

    pagination_class = None  # each list names its shape


class RateThrottle(SimpleRateThrottle):
    """Counts by the rate `scope`. As DRF says, requests at the same moment may count as one."""

    scope: str

    def __init__(self, scope: str = "") -> None:
        if scope:
            self.scope = scope
        super().__init__()

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count a request, which may be one of Django. Returns False above the limit."""
        return super().allow_request(request, view)
