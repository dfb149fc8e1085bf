"""The responses to requests that fail before a call of their endpoint."""

from __future__ import annotations

import structlog

from gateway.chat.core.formats import ApiFormat
from gateway.chat.errors import INTERNAL, SYNCHRONOUS, ChatError, look_up
from gateway.chat.http_messages import ChatResponse
from gateway.errors import HANDLER
from webhooks_core.web.errors import ApiError, InternalError, UnavailableError

log = structlog.stdlib.get_logger(__name__)


def failure_response(
    error: Exception, request_id: str, api_format: ApiFormat
) -> ChatResponse:
    """Return the response to a request that failed before a call of its endpoint."""
    headers = api_format.headers(request_id)
    if isinstance(error, ChatError):
        status, detail = look_up(SYNCHRONOUS, error, request_id)
        return ChatResponse.json(status, api_format.error(status, detail), headers)
    failure = _as_gateway_error(error, request_id)
    body, more = api_format.refusal(failure)
    headers.update(more)
    return ChatResponse.json(failure.status_code, body, headers)


def _as_gateway_error(error: Exception, request_id: str) -> ApiError:
    if isinstance(error, TimeoutError):
        log.error("database unavailable", request_id=request_id)
        return UnavailableError()
    known = HANDLER.translate(error)
    if known is None:
        log.error("chat failed", request_id=request_id, exc_info=error)
        return InternalError(INTERNAL)
    return known
