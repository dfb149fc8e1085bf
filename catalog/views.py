"""GraphQL over HTTP: POST with JSON, GET for queries, JSON answers, and GraphiQL for browsers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any

import orjson
import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.request import MediaType
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page

from catalog import graphiql
from catalog.execution.context import Context
from catalog.execution.operations import (
    Executor,
    GraphQLRequest,
    MutationNotAllowedError,
)
from catalog.schema.contract import schema
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.graphql")

JSON = "application/json"
RESPONSE_JSON = "application/graphql-response+json"
PAGE = "text/html"
READING = ("GET", "HEAD")
RETRY_AFTER_S = "5"
executor = Executor(schema.graphql_schema)


class RequestError(Exception):
    """A request that is answered with a status instead of being executed."""

    def __init__(self, status: int, code: str, message: str, **extensions: Any) -> None:
        super().__init__(message)
        self.status = status
        error = {"message": message, "extensions": {"code": code, **extensions}}
        self.body = {"errors": [error]}


def bad_request(message: str = "The request is malformed.") -> RequestError:
    return RequestError(400, "BAD_REQUEST", message)


def unsupported(message: str) -> RequestError:
    return RequestError(415, "UNSUPPORTED_MEDIA_TYPE", message)


def internal_error(**extensions: str) -> RequestError:
    code = "INTERNAL_SERVER_ERROR"
    return RequestError(500, code, "Internal server error", **extensions)


@csrf_exempt  # it reads no cookie, so no other site can use one
@gzip_page
def graphql(request: HttpRequest) -> HttpResponse:
    """Answer a GraphQL request, or show GraphiQL to a browser."""
    response = respond(request)
    patch_vary_headers(response, ["Accept"])
    return response


def respond(request: HttpRequest) -> HttpResponse:
    accepted = parse_accept(request.META.get("HTTP_ACCEPT", "").strip() or "*/*")
    if request.method in READING and accepted.prefers_page:
        return graphiql.page(request)
    try:
        status, body = execute(request, accepted)
    except RequestError as error:
        status, body = error.status, error.body
    except SuspiciousOperation:
        status, body = 400, bad_request().body
    except Exception as error:
        log.exception("request failed")
        status = 503 if is_outage(error) else 500
        body = internal_error(requestId=request_id(request)).body
    response = json_response(status, body, accepted.json or JSON)
    if status == 405:
        response["Allow"] = "POST" if request.method in READING else "GET, POST"
    if status == 503:
        response["Retry-After"] = RETRY_AFTER_S
    return response


def response_for(
    _request: HttpRequest, status: int, _error: BaseException | None
) -> HttpResponse:
    """Answer a failure before the view: an unknown host or address, or an exception."""
    error = internal_error()
    if status == 400:
        error = bad_request()
    elif status == 404:
        error = RequestError(404, "NOT_FOUND", "There is nothing at this address.")
    return json_response(error.status, error.body, JSON)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The JSON media type that a client prefers, and whether it prefers a page to both."""

    json: str | None
    prefers_page: bool


@lru_cache(maxsize=100)  # clients send few different ones
def parse_accept(accept: str) -> Accepted:
    """Parse an Accept header; a malformed one accepts nothing."""
    try:
        ranges = [MediaType(each) for each in accept.split(",") if each.strip()]
    except ValueError:  # a parameter in an unknown character set
        ranges = []
    # Django's own list leaves out those with q=0.
    ranges.sort(key=attrgetter("quality", "specificity"), reverse=True)
    places: dict[str, int] = {}
    for place, each in enumerate(ranges):
        places.setdefault(f"{each.main_type}/{each.sub_type}", place)

    def preferred(media_types: Sequence[str], *wildcards: str) -> str | None:
        """Return the best of these types; its most specific range decides, and q=0 refuses."""
        candidates = []
        for media_type in media_types:
            names = (media_type, *wildcards)
            place = next((places[name] for name in names if name in places), None)
            if place is not None and ranges[place].quality > 0:
                candidates.append((place, media_type))
        return min(candidates, key=itemgetter(0))[1] if candidates else None

    json = preferred((JSON, RESPONSE_JSON), "application/*", "*/*")
    return Accepted(json, preferred((PAGE, JSON, RESPONSE_JSON)) == PAGE)


def execute(request: HttpRequest, accepted: Accepted) -> tuple[int, dict[str, Any]]:
    """Read the request and execute it; return status and body, or raise RequestError."""
    if request.method not in {*READING, "POST"}:
        raise RequestError(
            405, "METHOD_NOT_ALLOWED", "Send GraphQL requests by POST or GET."
        )
    if accepted.json is None:
        raise RequestError(
            406, "NOT_ACCEPTABLE", f"Answers are {RESPONSE_JSON} or {JSON}."
        )
    read_only = request.method in READING
    parameters = query_parameters(request) if read_only else body_parameters(request)
    context = Context(request_id=request_id(request), bearer=bearer(request))
    try:
        answer = executor.answer(
            graphql_request(parameters), context, read_only=read_only
        )
    except MutationNotAllowedError:
        message = "Send mutations by POST."
        raise RequestError(405, "METHOD_NOT_ALLOWED", message) from None
    if answer.is_unavailable:
        return 503, answer.body
    is_refused = not answer.is_executed and accepted.json == RESPONSE_JSON
    return 400 if is_refused else 200, answer.body


def body_parameters(request: HttpRequest) -> Any:
    """Return the parameters in a JSON body."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != JSON or charset.lower() not in {"utf-8", "utf8"}:
        raise unsupported(f"Send the request as {JSON} in UTF-8.")
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        raise unsupported("Send the request without Content-Encoding.")
    try:
        return orjson.loads(request.body)
    except RequestDataTooBig:
        message = "The request body is too large."
        raise RequestError(413, "PAYLOAD_TOO_LARGE", message) from None
    except orjson.JSONDecodeError:
        raise bad_request("The request body is not JSON.") from None


def query_parameters(request: HttpRequest) -> Any:
    """Return the parameters in a query string; maps are JSON there."""
    parameters: dict[str, Any] = {**request.GET.dict()}
    for name in ("variables", "extensions"):
        if text := parameters.pop(name, None):
            try:
                parameters[name] = orjson.loads(text)
            except orjson.JSONDecodeError:
                raise bad_request(f"{name} is not JSON.") from None
    return parameters


def graphql_request(parameters: Any) -> GraphQLRequest:
    """Return the request, or raise RequestError for a parameter of a wrong type."""
    if not isinstance(parameters, dict):
        raise bad_request("The request is not a JSON object.")
    for key in ("variables", "extensions"):
        if not isinstance(parameters.get(key), dict | None):
            raise bad_request(f"{key} is not an object.")
    query = parameters.get("query")
    if not isinstance(query, str):
        raise bad_request("query is missing or not a string.")
    if not isinstance(parameters.get("operationName"), str | None):
        raise bad_request("operationName is not a string.")
    return GraphQLRequest(
        query=query,
        operation_name=parameters.get("operationName") or None,
        variables=parameters.get("variables"),
    )


def bearer(request: HttpRequest) -> str | None:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None


def request_id(request: HttpRequest) -> str:
    return str(getattr(request, "request_id", ""))


def json_response(status: int, body: dict[str, Any], media_type: str) -> HttpResponse:
    content_type = f"{media_type}; charset=utf-8"
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(orjson.dumps(body), content_type, status, headers=headers)
