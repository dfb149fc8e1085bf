"""What every API has: how its failures are written, and what its operations do with an endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import structlog

from gateway import json
from gateway.chat.apis import carried
from gateway.chat.apis.openai import chunks
from gateway.chat.capabilities import CAPABILITIES, Need
from gateway.chat.errors import (
    AFTER_FIRST_CHUNK,
    NOTHING,
    TOO_MANY_REQUESTS,
    Failure,
    InvalidValueError,
    Table,
    UnsupportedRequestError,
    UpstreamError,
    look_up,
)
from gateway.chat.sse import COMMENT, frame

if TYPE_CHECKING:
    from gateway.chat.apis.deltas import Reader, Writer
    from gateway.chat.context import ChatContext
    from gateway.chat.streams import Stream
    from gateway.configuration.shapes import ModelEntry

# So many pairs of a model and a field are remembered, each of which is logged once.
MAX_LOGGED = 10_000

log = structlog.stdlib.get_logger(__name__)
_logged: set[tuple[str, str]] = set()


@contextmanager
def translating(place: str) -> Iterator[None]:
    """Refuse what has another shape than its API's, and name its place in the request.

    The translations take a request as its API has it; what has another shape fails in them.
    Raises InvalidValueError.
    """
    try:
        yield
    except KeyError as error:
        raise InvalidValueError(f"{place} lacks {error}.") from error
    except (AttributeError, TypeError, ValueError) as error:
        log.warning("request not translated", place=place, error=type(error).__name__)
        raise InvalidValueError(f"{place} is not of its API's shape.") from error


def messages_of(body: Mapping[str, Any]) -> list[Any]:
    """Return the `messages` of a request. Raises InvalidValueError."""
    if not isinstance(messages := body.get("messages"), list):
        raise InvalidValueError("messages: must be a list.")
    return messages


class Format:
    """How an API writes failures, and describes models."""

    keep_alive: ClassVar[bytes] = COMMENT  # what a silent stream sends
    passes_pauses: ClassVar[bool] = True  # those that an upstream asks for
    event_name: ClassVar[bytes] = b""  # of the last event of a stream

    def error(
        self, status: int, detail: Any, upstream: UpstreamError = NOTHING
    ) -> dict[str, Any]:
        """Return the body of an error, with what an upstream said about it."""
        raise NotImplementedError

    def failure(self, table: Table, error: BaseException, request_id: str) -> Failure:
        """Return status, body and headers of a request that failed, by one of the tables."""
        status, detail = look_up(table, error, request_id)
        upstream, headers = upstream_error(error), {**getattr(error, "headers", {})}
        if self.passes_pauses and upstream.status == TOO_MANY_REQUESTS:
            status, headers = TOO_MANY_REQUESTS, pause_header(upstream.retry_after)
        return status, self.error(status, detail, upstream), headers

    def error_event(self, error: BaseException, request_id: str) -> bytes:
        """Return the last event of a stream that fails after it began."""
        _, body, _ = self.failure(AFTER_FIRST_CHUNK, error, request_id)
        data = body if isinstance(body, bytes) else json.dumps(body)
        return frame(data, self.event_name)

    def models(self, endpoints: Sequence[ModelEntry]) -> dict[str, Any]:
        """Return the list of models; all of them are one page."""
        raise NotImplementedError

    def model(self, endpoint: ModelEntry) -> dict[str, Any]:
        raise NotImplementedError


class Operation:
    """What a request does at an upstream, in the shape of one API. Without state.

    `api` is the API's name in `speaks`, `path` its address below a server's base URL. `reader` reads
    its answers, `turns` names the conversation in a request.
    """

    api: ClassVar[str]
    path: ClassVar[str]
    reader: ClassVar[type[Reader]]
    turns: ClassVar[str] = ""
    action: ClassVar[str]  # in policy decisions
    inference_type: ClassVar[str] = "chat"
    can_stream: ClassVar[bool] = True
    is_budgeted: ClassVar[bool] = True  # False: it costs nothing
    # The client's headers with this prefix, which a server of this API gets.
    passed_headers: ClassVar[str] = ""
    capabilities: ClassVar[Mapping[str, Need]] = CAPABILITIES

    def passing(self, context: ChatContext) -> Stream:
        """Return a stream for the events of a server that speaks this API."""
        raise NotImplementedError

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        """Return a whole answer of a server that speaks this API, and note its usage.

        Raises RefusedError, UpstreamServiceError.
        """
        value = chunks.parse(body, json.MAX_VALUES_READ)
        self.note(context, value)
        return chunks.renamed(body, value, context.request.model)

    def note(self, context: ChatContext, answer: dict[str, Any]) -> None:
        """Note the usage of a whole answer. Raises RefusedError, UpstreamServiceError."""
        for delta in self.reader().whole(answer):
            context.note(delta)

    def own_body(self, context: ChatContext) -> Mapping[str, Any]:
        """Return the body for a server that speaks this API: the one that was sent, as a rule.

        It is without what this gateway has put in for other upstreams: a client that changes the
        model sends it, and so does a fallback. Raises UnsupportedRequestError.
        """
        body = context.request.body
        given = body.get(self.turns)
        if not isinstance(given, list) or not carried.is_in(context.request.raw):
            return body
        return {**body, self.turns: [*carried.without(given)]}

    def failure(
        self, context: ChatContext, table: Table, error: BaseException
    ) -> Failure:
        """Return status, body and headers for a call that failed before its first chunk."""
        return context.api_format.failure(table, error, context.request_id)

    def without_call(self, context: ChatContext) -> bytes | None:
        """Return the answer for a client whose server does not speak this API, if none is needed."""
        return None

    def translate(self, context: ChatContext) -> tuple[dict[str, Any], Writer]:
        """Return the request as a chat request, and what writes its answer.

        Raises InvalidValueError; UnsupportedRequestError, as an operation does that has no counterpart.
        """
        raise UnsupportedRequestError(self.action)


def leave_out(model: str, fields: Iterable[str]) -> None:
    """Log fields of a request that a translation leaves out, once per model and field."""
    for name in fields:
        place = model, name[:100]
        if place not in _logged and len(_logged) < MAX_LOGGED:
            _logged.add(place)
            log.warning("field left out", model=model, field=place[1])


def pause_header(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}


def upstream_error(error: BaseException) -> UpstreamError:
    return getattr(error, "upstream", NOTHING)
