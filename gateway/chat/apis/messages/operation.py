"""Messages in Anthropic's shape: passed to servers that speak it, translated for the others."""

from __future__ import annotations

from typing import Any

from gateway import json
from gateway.chat.apis.base import Operation
from gateway.chat.apis.deltas import Writer
from gateway.chat.apis.messages.reader import MessagesReader
from gateway.chat.apis.messages.request import translate
from gateway.chat.apis.messages.writer import MessagesWriter
from gateway.chat.apis.passing import PassedEvents
from gateway.chat.capabilities import CAPABILITIES
from gateway.chat.context import ChatContext
from gateway.chat.sse import frame
from gateway.json import member

# The last event of a stream, which some servers leave out.
STOP = frame(b'{"type":"message_stop"}', b"message_stop")


class Messages(Operation):
    """A message, at once or as a stream."""

    api, path, action = "messages", "messages", "messages"
    reader, turns = MessagesReader, "messages"
    passed_headers = "anthropic-"
    # Adaptive thinking and an effort leave to the model whether it thinks.
    capabilities = CAPABILITIES | {
        "reasoning": lambda body: member(body, "thinking", "type") == "enabled"
    }

    def passing(self, context: ChatContext) -> PassedEvents:
        return PassedEvents(context, MessagesReader(), "message", STOP)

    def translate(self, context: ChatContext) -> tuple[dict[str, Any], Writer]:
        context.response_headers = {"request-id": context.request_id}
        chat = translate(context.request.body, context.endpoint.name)
        return chat, MessagesWriter(context)


class CountTokens(Messages):
    """How many tokens a message has: counted by a server that speaks the API, else an estimate."""

    path, action = "messages/count_tokens", "messages.count_tokens"
    can_stream = False
    is_budgeted = False

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        return body

    def without_call(self, context: ChatContext) -> bytes:
        context.response_headers = {"request-id": context.request_id}
        tokens = context.estimated_prompt()
        return json.dumps({"input_tokens": tokens, "estimated": True})


MESSAGES, COUNT_TOKENS = Messages(), CountTokens()
