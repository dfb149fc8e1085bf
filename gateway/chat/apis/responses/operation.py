"""OpenAI's Responses API: passed to servers that speak it, translated without a memory for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway import json
from gateway.chat.apis.base import Operation
from gateway.chat.apis.deltas import Writer
from gateway.chat.apis.passing import PassedEvents
from gateway.chat.apis.responses.format import error_of
from gateway.chat.apis.responses.reader import ResponsesReader
from gateway.chat.apis.responses.request import translate
from gateway.chat.apis.responses.tools import Tools
from gateway.chat.apis.responses.writer import ResponsesWriter
from gateway.chat.capabilities import CAPABILITIES
from gateway.chat.context import ChatContext
from gateway.chat.errors import Failure, Table, UnsupportedRequestError
from gateway.chat.failures import is_too_long
from gateway.chat.http_messages import EVENT_STREAM
from gateway.chat.sse import frame
from gateway.json import member


class PassedResponses(PassedEvents):
    """The events of a response, which has a failure of its own."""

    def failed(self, error: BaseException) -> bytes:
        kind, fault = "response.failed", error_of(error, self.context.request_id)
        event = {
            "type": kind,
            "response": {**self.last, "status": "failed", "error": fault},
            "sequence_number": self.number + 1,
        }
        return self.flush() + frame(json.dumps(event), kind.encode())


class Responses(Operation):
    """Responses, at once or as a stream."""

    api, path, action = "responses", "responses", "responses"
    reader, turns = ResponsesReader, "input"
    capabilities = CAPABILITIES | {
        "reasoning": lambda body: (
            member(body, "reasoning", "effort") not in (None, "none")
        )
    }

    def own_body(self, context: ChatContext) -> Mapping[str, Any]:
        """Refuse a response that the client would ask for later: another key may not read it."""
        if context.request.body.get("background"):
            raise UnsupportedRequestError("background: true")
        return super().own_body(context)

    def passing(self, context: ChatContext) -> PassedResponses:
        return PassedResponses(context, ResponsesReader(), "response")

    def failure(
        self, context: ChatContext, table: Table, error: BaseException
    ) -> Failure:
        """Let a request that is too long fail inside its stream, as at OpenAI.

        Codex then shortens the conversation, but ends at a status.
        """
        if not (context.request.stream and is_too_long(error)):
            return super().failure(context, table, error)
        context.error_status = 400
        return 200, ResponsesWriter(context, Tools("")).failed(error), EVENT_STREAM

    def translate(self, context: ChatContext) -> tuple[dict[str, Any], Writer]:
        chat, tools = translate(context.request.body, context.endpoint.name)
        return chat, ResponsesWriter(context, tools)


RESPOND = Responses()
