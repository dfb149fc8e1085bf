"""GraphQL over HTTP: POST with JSON, GET for queries, JSON answers, and GraphiQL for browsers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import orjson
import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page

from catalog import graphiql
from catalog.execution.operations import (
    Executor,
    GraphQLRequest,
    MutationNotAllowedError,
)
from catalog.schema import schema
from webhooks_core.database.outages import is_outage

log = structlog.stdlib.get_logger("signpost.graphql")

JSON = "application/json"
RESPONSE_JSON = "application/graphql-response+json"
PAGE = "text/html"
READING = ("GET", "HEAD")
CHARSET = re.compile(r"\s*;\s*charset=[^;,]*", re.IGNORECASE)
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


def internal_error(**extensions: str) -> RequestError:
    code = "INTERNAL_SERVER_ERROR"
    return RequestError(500, code, "Internal server error", **extensions)


@csrf_exempt  # it reads no cookie, so no other site can use one
@gzip_page
def graphql(request: HttpRequest) -> HttpResponse:
    """Answer a GraphQL request, or show GraphiQL to a browser."""
    response = respond(request)
    response["Vary"] = "Accept"
    return response


def respond(request: HttpRequest) -> HttpResponse:
    accept = request.META.get("HTTP_ACCEPT", "").strip() or "*/*"
    is_reading = request.method in READING
    if is_reading and preferred(accept, JSON, RESPONSE_JSON, PAGE) == PAGE:
        return graphiql.page(request)
    media_type = preferred(accept, JSON, RESPONSE_JSON)
    try:
        status, body = execute(request, media_type)
    except RequestError as error:
        status, body = error.status, error.body
    except SuspiciousOperation:
        status, body = 400, bad_request().body
    except Exception as error:
        log.exception("request failed")
        status = 503 if is_outage(error) else 500
        body = internal_error(requestId=getattr(request, "request_id", "")).body
    response = json_response(status, body, media_type or JSON)
    if status == 405:
        response["Allow"] = "POST" if is_reading else "GET, POST"
    if status == 503:
        response["Retry-After"] = RETRY_AFTER_S
    return response


@lru_cache(maxsize=100)  # clients send few different ones
def preferred(accept: str, *media_types: str) -> str | None:
    """Return which of these an Accept header prefers, with any character set."""
    request = HttpRequest()
    request.META["HTTP_ACCEPT"] = CHARSET.sub("", accept)
    return request.get_preferred_type(media_types)


def execute(request: HttpRequest, media_type: str | None) -> tuple[int, dict[str, Any]]:
    """Read the request and execute it; return status and body, or raise RequestError."""
    if request.method not in {*READING, "POST"}:
        message = "Send GraphQL requests by POST or GET."
        raise RequestError(405, "METHOD_NOT_ALLOWED", message)
    if media_type is None:
        message = f"Answers are {RESPONSE_JSON} or {JSON}."
        raise RequestError(406, "NOT_ACCEPTABLE", message)
    read_only = request.method in READING
    parameters = query_parameters(request) if read_only else body_parameters(request)
    call = graphql_request(parameters)
    try:
        answer = executor.answer(call, request, read_only=read_only)
    except MutationNotAllowedError:
        message = "Send mutations by POST."
        raise RequestError(405, "METHOD_NOT_ALLOWED", message) from None
    if answer.is_unavailable:
        return 503, answer.body
    is_refused = not answer.is_executed and media_type == RESPONSE_JSON
    return 400 if is_refused else 200, answer.body


def body_parameters(request: HttpRequest) -> Any:
    """Return the parameters in a JSON body."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    coding = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    is_utf8 = charset.lower() in {"utf-8", "utf8"}
    if request.content_type != JSON or not is_utf8 or coding != "identity":
        message = f"Send the request as {JSON} in UTF-8, without Content-Encoding."
        raise RequestError(415, "UNSUPPORTED_MEDIA_TYPE", message)
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
    query, operation_name = parameters.get("query"), parameters.get("operationName")
    if not isinstance(query, str):
        raise bad_request("query is missing or not a string.")
    if not isinstance(operation_name, str | None):
        raise bad_request("operationName is not a string.")
    return GraphQLRequest(query, operation_name or None, parameters.get("variables"))


def json_response(status: int, body: dict[str, Any], media_type: str) -> HttpResponse:
    content_type = f"{media_type}; charset=utf-8"
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(orjson.dumps(body), content_type, status, headers=headers)


def response_for(
    _request: HttpRequest, status: int, _error: BaseException | None
) -> HttpResponse:
    """Answer a failure before the view: an unknown host or address, or an exception."""
    error = internal_error()
    if status == 400:
        error = bad_request()
    if status == 404:
        error = RequestError(404, "NOT_FOUND", "There is nothing at this address.")
    return json_response(error.status, error.body, JSON)
