"""Chat and embeddings in OpenAI's shape, and chat in the contract's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway import json
from gateway.chat.apis.base import Operation
from gateway.chat.apis.deltas import Writer
from gateway.chat.apis.openai import chunks
from gateway.chat.apis.openai.passing import PassedChunks
from gateway.chat.apis.openai.reader import ChatReader, usage_in
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.context import ChatContext
from gateway.chat.errors import UnsupportedRequestError, UpstreamServiceError
from gateway.chat.failures import failure_in, replaces_answer
from gateway.chat.upstreams.base import Call


class ChatCompletions(Operation):
    """Completions, at once or as a stream."""

    api, path, action = "chat", "chat/completions", "chat.completions"
    reader = ChatReader

    def passing(self, context: ChatContext) -> PassedChunks:
        is_contract = context.is_contract
        return PassedChunks(context.request, context.log_delta, is_contract=is_contract)

    def translate(self, call: Call) -> tuple[dict[str, Any], Writer]:
        context = call.context
        writer = ChatWriter(context.request, is_contract=context.is_contract)
        return {**call.context.request.body}, writer


class Embeddings(Operation):
    """Embeddings of texts."""

    api, path, action = "chat", "embeddings", "embeddings"
    inference_type = "embedding"
    can_stream = False

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        """Return the answer; it has no completion."""
        value = chunks.parse(body, json.MAX_VALUES_READ)
        if replaces_answer(value, "data"):
            raise failure_in(value)
        if not isinstance(value.get("data"), list):
            raise UpstreamServiceError("the answer has no data")
        if usage := usage_in(value):
            context.usage = replace(usage, completion_tokens=0)
        return chunks.renamed(body, value, context.request.model)

    def translate(self, call: Call) -> tuple[dict[str, Any], Writer]:
        raise UnsupportedRequestError("embeddings")


CHAT, EMBEDDINGS = ChatCompletions(), Embeddings()
