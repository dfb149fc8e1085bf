"""What the products' JSON APIs share: strict bodies, orjson, one order of checks.

Failures are DRF's exceptions: each product translates them into its own shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

import orjson
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

MAX_BODY_BYTES = 65_536

DIGITS = re.compile(r"[0-9]+")
# Any number of more digits than this is larger than everything that we count.
MAX_DIGITS = 12


class PayloadTooLarge(exceptions.APIException):
    status_code = 413
    default_detail = "The body is too large."
    default_code = "payload_too_large"


class EncodedBody(exceptions.APIException):
    """The body has a Content-Encoding: decoded, a small one could be of any size."""

    status_code = 415
    default_detail = "Send the body as it is, without Content-Encoding."
    default_code = "unsupported_media_type"
    headers = {"Accept-Encoding": "identity"}


def is_encoded(content_encoding: str | None) -> bool:
    """Return whether a header says that the body has a content coding (RFC 9110 section 8.4)."""
    return (content_encoding or "").strip().lower() not in {"", "identity"}


class MethodNotAllowed(exceptions.MethodNotAllowed):
    """Says in `headers` which methods are allowed."""

    def __init__(self, method: str, *, allowed: Sequence[str]) -> None:
        super().__init__(method)
        self.headers = {"Allow": ", ".join(allowed)}


def check_length(parser_context: Mapping[str, Any] | None, *, most: int) -> None:
    """Raise PayloadTooLarge when a request says that its body is larger.

    A server may give us the length alone of what it refused to take in.
    """
    meta = parser_context["request"].META if parser_context else {}
    declared = str(meta.get("CONTENT_LENGTH") or "")
    if DIGITS.fullmatch(declared) and int(declared[:MAX_DIGITS]) > most:
        raise _too_large(most)


def _too_large(most: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is over {most} bytes.")


class StrictJSONParser(BaseParser):
    """Parses JSON of at most 64 KiB; refuses NaN, bad UTF-8, lone surrogates, deep nesting."""

    media_type = "application/json"
    max_bytes = MAX_BODY_BYTES

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        check_length(parser_context, most=self.max_bytes)
        body = stream.read(self.max_bytes + 1)
        if len(body) > self.max_bytes:
            raise _too_large(self.max_bytes)
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise exceptions.ParseError(
                f"The body is not JSON: {error.msg} "
                f"(line {error.lineno}, column {error.colno})."
            ) from error


class JSONRenderer(BaseRenderer):
    """Renders what our views return: dicts of texts, numbers and lists; None is no body."""

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
    """JSON comes out, whatever `Accept` or `?format=` ask for."""

    def select_parser(
        self, request: Request, parsers: Iterable[BaseParser]
    ) -> BaseParser | None:
        media_type = request.content_type.partition(";")[0].strip().lower()
        fitting = (parser for parser in parsers if parser.media_type == media_type)
        return next(fitting, None)

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return JSONRenderer(), JSONRenderer.media_type


class ProductAPIView(APIView):
    """Checks, in this order: method, caller, throttle; then the method's own checks."""

    parser_classes: Sequence[type[BaseParser]] = (StrictJSONParser,)
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = IgnoreAccept
    metadata_class = None

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {"Cache-Control": "no-store"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if request.method not in self.allowed_methods:
            raise MethodNotAllowed(request.method or "", allowed=self.allowed_methods)
        # OPTIONS tells what a route can do, and that is no secret.
        self.check_caller = request.method != "OPTIONS"
        super().initial(request, *args, **kwargs)

    def perform_authentication(self, request: Request) -> None:
        if self.check_caller:
            super().perform_authentication(request)

    def check_throttles(self, request: Request) -> None:
        if self.check_caller:
            super().check_throttles(request)

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        return Response(status=204, headers={"Allow": ", ".join(self.allowed_methods)})


def json_object(request: Request) -> dict[str, Any]:
    """Return the body, which must be a JSON object.

    Raises ParseError, PayloadTooLarge, EncodedBody or UnsupportedMediaType.
    """
    if is_encoded(request.headers.get("Content-Encoding")):
        raise EncodedBody
    if request.stream is None:
        raise exceptions.ParseError(
            "The body is empty: send a JSON object, and its Content-Length."
        )
    body = request.data
    if not isinstance(body, dict):
        raise exceptions.ParseError("The body must be a JSON object.")
    return body


def positive_integer(
    request: Request, name: str, *, default: int, maximum: int | None = None
) -> int:
    """Return a query parameter of at least 1; above `maximum` it is the maximum.

    Raises ParseError.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not DIGITS.fullmatch(text) or not (digits := text.lstrip("0")):
        raise exceptions.ParseError(f"{name} must be an integer of at least 1.")
    number = int(digits) if len(digits) <= MAX_DIGITS else 10**MAX_DIGITS
    return number if maximum is None else min(number, maximum)
