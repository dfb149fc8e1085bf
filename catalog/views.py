"""GraphQL over HTTP: POST with JSON, GET for queries, JSON answers, and GraphiQL for browsers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson
import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from catalog.execution.context import Context
from catalog.execution.operations import (
    OUTAGES,
    Answer,
    Executor,
    GraphQLRequest,
    MutationNotAllowedError,
)
from catalog.schema.contract import schema

log = structlog.stdlib.get_logger("signpost.graphql")

JSON = "application/json"
RESPONSE_JSON = "application/graphql-response+json"
PAGE = "text/html"
# what is answered to a client that accepts this
KINDS = {
    JSON: JSON,
    RESPONSE_JSON: RESPONSE_JSON,
    "application/*": JSON,
    "*/*": JSON,
}
READING = ("GET", "HEAD")
RETRY_AFTER_S = "5"
executor = Executor(schema.graphql_schema)


@dataclass
class Refusal(Exception):  # noqa: N818 - an answer rather than an error of ours
    """A request that is no well-formed GraphQL request: status, code and message."""

    status: int
    code: str
    message: str

    def answer(self) -> Answer:
        error = {"message": self.message, "extensions": {"code": self.code}}
        return Answer({"errors": [error]}, executed=False)


@csrf_exempt  # it reads no cookie, so that no other site can borrow one
def graphql(request: HttpRequest) -> HttpResponse:
    """Answer a GraphQL request, or show GraphiQL to a browser."""
    wanted = wants(request.META.get("HTTP_ACCEPT", "*/*"))
    if request.method in READING and wanted.page:
        return with_vary(render(request, "catalog/graphiql.html"))
    try:
        answer = respond(request, wanted)
        status = status_of(answer, wanted)
    except Refusal as refusal:
        status, answer = refusal.status, refusal.answer()
    except SuspiciousOperation:
        malformed = Refusal(400, "BAD_REQUEST", "The request is malformed.")
        status, answer = malformed.status, malformed.answer()
    except Exception as error:
        log.exception("request failed")
        answer = Refusal(500, "INTERNAL_SERVER_ERROR", "Internal server error").answer()
        answer.body["errors"][0]["extensions"]["requestId"] = request_id(request)
        status = 503 if isinstance(error, OUTAGES) else 500
    response = HttpResponse(
        orjson.dumps(answer.body),
        status=status,
        content_type=f"{wanted.json or JSON}; charset=utf-8",
    )
    if status == 405:
        response["Allow"] = "POST" if request.method in READING else "GET, POST"
    if status == 503:
        response["Retry-After"] = RETRY_AFTER_S
    return with_vary(response)


def response_for(
    _request: HttpRequest, status: int, _error: BaseException | None
) -> HttpResponse:
    """Answer what failed before the view: a Host that is not ours, an unknown address, a crash."""
    refusal = {
        400: Refusal(400, "BAD_REQUEST", "The request is malformed."),
        404: Refusal(404, "NOT_FOUND", "There is nothing at this address."),
    }.get(status, Refusal(500, "INTERNAL_SERVER_ERROR", "Internal server error"))
    body = orjson.dumps(refusal.answer().body)
    content_type = f"{JSON}; charset=utf-8"
    return with_vary(HttpResponse(body, content_type, status=refusal.status))


@dataclass(frozen=True, slots=True)
class Wants:
    """What a client accepts: the kind of JSON it prefers, and whether a page comes before any."""

    json: str | None
    page: bool


@lru_cache(maxsize=100)  # clients send few different ones
def wants(accept: str) -> Wants:
    """Read an Accept header; one that cannot be read accepts nothing."""
    asked = HttpRequest()
    asked.META["HTTP_ACCEPT"] = accept
    try:
        kinds = [f"{one.main_type}/{one.sub_type}" for one in asked.accepted_types]
    except ValueError:  # a parameter in an unknown character set
        kinds = []
    preferred = next((KINDS[kind] for kind in kinds if kind in KINDS), None)
    first = next((kind for kind in kinds if kind in {PAGE, JSON, RESPONSE_JSON}), None)
    return Wants(preferred, page=first == PAGE)


def respond(request: HttpRequest, wanted: Wants) -> Answer:
    """Read the request and execute it, or raise Refusal."""
    if request.method not in {*READING, "POST"}:
        raise Refusal(
            405, "METHOD_NOT_ALLOWED", "Send GraphQL requests by POST or GET."
        )
    if wanted.json is None:
        raise Refusal(406, "NOT_ACCEPTABLE", f"Answers are {RESPONSE_JSON} or {JSON}.")
    read_only = request.method in READING
    parameters = from_address(request) if read_only else from_body(request)
    context = Context(request_id=request_id(request), bearer=bearer(request))
    try:
        return executor.answer(wellformed(parameters), context, read_only=read_only)
    except MutationNotAllowedError:
        raise Refusal(405, "METHOD_NOT_ALLOWED", "Send mutations by POST.") from None


def from_body(request: HttpRequest) -> Any:
    """Return the parameters in a JSON body."""
    charset = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != JSON or charset.lower() not in {"utf-8", "utf8"}:
        raise Refusal(
            415, "UNSUPPORTED_MEDIA_TYPE", f"Send the request as {JSON} in UTF-8."
        )
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        raise Refusal(
            415, "UNSUPPORTED_MEDIA_TYPE", "Send the request without Content-Encoding."
        )
    try:
        return orjson.loads(request.body)
    except RequestDataTooBig:
        raise Refusal(
            413, "PAYLOAD_TOO_LARGE", "The request body is too large."
        ) from None
    except orjson.JSONDecodeError:
        raise Refusal(400, "BAD_REQUEST", "The request body is not JSON.") from None


def from_address(request: HttpRequest) -> Any:
    """Return the parameters in a query string; maps are JSON there."""
    parameters: dict[str, Any] = {**request.GET.dict()}
    for name in ("variables", "extensions"):
        if parameters.get(name):
            try:
                parameters[name] = orjson.loads(parameters[name])
            except orjson.JSONDecodeError:
                raise Refusal(400, "BAD_REQUEST", f"{name} is not JSON.") from None
        else:
            parameters.pop(name, None)
    return parameters


def wellformed(parameters: Any) -> GraphQLRequest:
    """Return the request, or raise Refusal: each parameter has one type."""
    if not isinstance(parameters, dict):
        raise Refusal(400, "BAD_REQUEST", "The request is not a JSON object.")
    query, name = parameters.get("query"), parameters.get("operationName")
    if not isinstance(query, str):
        raise Refusal(400, "BAD_REQUEST", "query is missing or not a string.")
    if not isinstance(name, str | None):
        raise Refusal(400, "BAD_REQUEST", "operationName is not a string.")
    for key in ("variables", "extensions"):
        if not isinstance(parameters.get(key), dict | None):
            raise Refusal(400, "BAD_REQUEST", f"{key} is not an object.")
    return GraphQLRequest(query, name or None, parameters.get("variables"))


def status_of(answer: Answer, wanted: Wants) -> int:
    """Return the status of an answer: 503 where the database did not serve all of it."""
    if answer.unavailable:
        return 503
    return 400 if not answer.executed and wanted.json == RESPONSE_JSON else 200


def bearer(request: HttpRequest) -> str | None:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None


def request_id(request: HttpRequest) -> str:
    found: str = getattr(request, "request_id", "")
    return found


def with_vary(response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Accept"])
    return response
