"""Chat and embeddings in OpenAI's shape, and chat in the contract's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.chat.apis.base import Operation
from gateway.chat.apis.deltas import Tokens, Writer
from gateway.chat.apis.openai.passing import PassedChunks
from gateway.chat.apis.openai.reader import ChatReader
from gateway.chat.apis.openai.writer import ChatWriter
from gateway.chat.context import ChatContext
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.failures import failure_in, is_failure
from gateway.chat.tokens import Usage


class ChatCompletions(Operation):
    """Completions, at once or as a stream."""

    api, path, action = "chat", "chat/completions", "chat.completions"
    reader = ChatReader

    def passing(self, context: ChatContext) -> PassedChunks:
        return PassedChunks(context)

    def note(self, context: ChatContext, answer: dict[str, Any]) -> None:
        """Read only the usage of an answer that has it all: reading its text costs a tenth more."""
        if context.log is None and (usage := Usage.read(answer.get("usage"))):
            is_answer = isinstance(answer.get("choices"), list)
            if usage.completion_tokens and is_answer and not is_failure(answer):
                context.note(Tokens(usage))
                return
        super().note(context, answer)

    def translate(self, context: ChatContext) -> tuple[dict[str, Any], Writer]:
        return {**context.request.body}, ChatWriter(context)


class Embeddings(Operation):
    """Embeddings of texts."""

    api, path, action = "chat", "embeddings", "embeddings"
    inference_type = "embedding"
    can_stream = False

    def note(self, context: ChatContext, answer: dict[str, Any]) -> None:
        if is_failure(answer):
            raise failure_in(answer)
        if not isinstance(answer.get("data"), list):
            raise UpstreamServiceError("the answer has no data")
        if usage := Usage.read(answer.get("usage")):
            context.note(Tokens(replace(usage, completion_tokens=0)))


CHAT, EMBEDDINGS = ChatCompletions(), Embeddings()
