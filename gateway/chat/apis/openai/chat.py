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
from gateway.chat.tokens import text_length
from gateway.chat.upstreams.base import Call
from gateway.json import objects


class ChatCompletions(Operation):
    """Completions, at once or as a stream."""

    api, path, action = "chat", "chat/completions", "chat.completions"

    def passing(self, context: ChatContext) -> PassedChunks:
        is_contract = context.is_contract
        return PassedChunks(context.request, context.log_delta, is_contract=is_contract)

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        value = chunks.parse(body)
        if context.log_delta is not None:
            for delta in ChatReader().whole(value):
                context.note(delta)
        checked(context, value, "choices")
        return chunks.renamed(body, value, context.request.model)

    def translate(self, call: Call) -> tuple[dict[str, Any], Writer]:
        context = call.context
        writer = ChatWriter(context.request, is_contract=context.is_contract)
        return {**call.context.request.body}, writer


class Embeddings(Operation):
    """Embeddings of texts."""

    api, path, action = "chat", "embeddings", "embeddings"
    list_key = "data"
    inference_type = "embedding"
    can_stream = False

    def passed(self, context: ChatContext, body: bytes) -> bytes:
        value = chunks.parse(body, json.MAX_VALUES_READ)
        checked(context, value, "data")
        return chunks.renamed(body, value, context.request.model)

    def translate(self, call: Call) -> tuple[dict[str, Any], Writer]:
        raise UnsupportedRequestError("embeddings")


CHAT, EMBEDDINGS = ChatCompletions(), Embeddings()


def checked(context: ChatContext, value: dict[str, Any], list_key: str) -> None:
    """Note the usage of an answer that has a list under a key; embeddings have no completion.

    Raises UpstreamServiceError, InvalidValueError.
    """
    if replaces_answer(value, list_key):
        raise failure_in(value)
    if not isinstance(value.get(list_key), list):
        raise UpstreamServiceError(f"the answer has no {list_key}")
    context.usage = usage = usage_in(value)
    if usage is None or not usage.completion_tokens:
        if list_key == "choices":
            messages = [choice.get("message") for choice in objects(value[list_key])]
            context.completion_characters = text_length(messages)
        elif usage is not None:
            context.usage = replace(usage, completion_tokens=0)
