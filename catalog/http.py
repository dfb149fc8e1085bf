"""GraphQL over HTTP: POST with JSON, GET for queries, JSON answers, and GraphiQL for browsers."""

from __future__ import annotations

from dataclasses import dataclass
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
    Answer,
    Executor,
    GraphQLRequest,
    MutationNotAllowedError,
)
from catalog.schema.contract import schema

log = structlog.stdlib.get_logger("signpost.graphql")

JSON = "application/json"
RESPONSE_JSON = "application/graphql-response+json"
executor = Executor(schema)


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
    if request.method == "GET" and wants_page(request):
        return with_vary(render(request, "catalog/graphiql.html"))
    try:
        status, answer = 200, respond(request)
        if not answer.executed and media_type(request) == RESPONSE_JSON:
            status = 400
    except Refusal as refusal:
        status, answer = refusal.status, refusal.answer()
    except SuspiciousOperation:
        malformed = Refusal(400, "BAD_REQUEST", "The request is malformed.")
        status, answer = malformed.status, malformed.answer()
    except Exception:
        log.exception("request failed")
        answer = Refusal(500, "INTERNAL_SERVER_ERROR", "Internal server error").answer()
        answer.body["errors"][0]["extensions"]["requestId"] = request_id(request)
        status = 500
    response = HttpResponse(
        orjson.dumps(answer.body),
        status=status,
        content_type=f"{media_type(request) or JSON}; charset=utf-8",
    )
    if status == 405:
        response["Allow"] = "GET, POST" if request.method != "GET" else "POST"
    return with_vary(response)


def respond(request: HttpRequest) -> Answer:
    """Read the request and execute it, or raise Refusal."""
    if request.method not in {"GET", "POST"}:
        raise Refusal(
            405, "METHOD_NOT_ALLOWED", "Send GraphQL requests by POST or GET."
        )
    if media_type(request) is None:
        raise Refusal(406, "NOT_ACCEPTABLE", f"Answers are {RESPONSE_JSON} or {JSON}.")
    read_only = request.method == "GET"
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


def wants_page(request: HttpRequest) -> bool:
    """Tell whether a browser asks: HTML is accepted, and no kind of JSON before it."""
    for accepted in request.accepted_types:
        kind = f"{accepted.main_type}/{accepted.sub_type}"
        if kind in {"text/html", JSON, RESPONSE_JSON}:
            return kind == "text/html"
    return False


def media_type(request: HttpRequest) -> str | None:
    """Return the kind of JSON that the client prefers; None when it accepts neither."""
    for accepted in request.accepted_types:
        for offered in (JSON, RESPONSE_JSON):
            main, sub = offered.split("/")
            if accepted.main_type in {main, "*"} and accepted.sub_type in {sub, "*"}:
                return offered
    return None


def bearer(request: HttpRequest) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None


def request_id(request: HttpRequest) -> str:
    found: str = getattr(request, "request_id", "")
    return found


def with_vary(response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["Accept"])
    return response
