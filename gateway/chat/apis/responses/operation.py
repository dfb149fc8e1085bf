"""OpenAI's Responses API: passed to servers that speak it, translated without a memory for others."""

from __future__ import annotations

from typing import Any

from gateway.chat import errors
from gateway.chat.apis.base import Operation
from gateway.chat.apis.deltas import Writer
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.responses.passing import (
    PassedResponses,
    ResponsesReader,
    own_items,
)
from gateway.chat.apis.responses.request import translate
from gateway.chat.apis.responses.tools import Tools
from gateway.chat.apis.responses.writer import ResponsesWriter
from gateway.chat.capabilities import CAPABILITIES
from gateway.chat.context import ChatContext
from gateway.chat.errors import UnsupportedRequestError
from gateway.chat.failures import is_too_long
from gateway.chat.http_messages import EVENT_STREAM
from gateway.chat.upstreams.base import Call
from gateway.json import member


class Responses(Operation):
    """Responses, at once or as a stream."""

    api, path, action = "responses", "responses", "responses"
    list_key = "output"
    capabilities = CAPABILITIES | {
        "reasoning": lambda body: (
            member(body, "reasoning", "effort") not in (None, "none")
        )
    }

    def own_body(self, call: Call) -> dict[str, Any] | None:
        """Refuse a response that the client would ask for later: another key may not read it."""
        body = call.context.request.body
        if body.get("background"):
            raise UnsupportedRequestError("background: true")
        given = body.get("input")
        if not isinstance(given, list):
            return None
        items = [*own_items(given)]
        return None if items == given else {**body, "input": items}

    def passing(self, context: ChatContext) -> PassedResponses:
        return PassedResponses(context.request.model, context.log_delta)

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        answer = chunks.parse(body)
        for delta in ResponsesReader().whole(answer):
            context.note(delta)
        return chunks.renamed(body, answer, context.request.model)

    def failure(
        self, context: ChatContext, table: errors.Table, error: BaseException
    ) -> tuple[int, Any, dict[str, str]]:
        """Let a request that is too long fail inside its stream, as at OpenAI.

        Codex then shortens the conversation, but ends at a status.
        """
        if not (context.request.stream and is_too_long(error)):
            return super().failure(context, table, error)
        request, tokens = context.request, context.estimated_prompt
        writer = ResponsesWriter(request.body, request.model, Tools(""), tokens)
        context.error_status = 400
        return 200, writer.failed(error, context.request_id), EVENT_STREAM

    def translate(self, call: Call) -> tuple[dict[str, Any], Writer]:
        context, body = call.context, call.context.request.body
        chat, tools = translate(body, call.entry.name)
        model, tokens = context.request.model, context.estimated_prompt
        return chat, ResponsesWriter(body, model, tools, tokens)


RESPOND = Responses()
