"""Messages in Anthropic's shape: passed to its own kind of upstream, translated for the others."""

from __future__ import annotations

from gateway import json
from gateway.chat.capabilities import CAPABILITIES
from gateway.chat.context import ChatContext
from gateway.chat.operations.base import Operation
from gateway.chat.operations.messages import passing, translating
from gateway.chat.streaming.opened import OpenedStream
from gateway.chat.tokens import estimate, prompt_length
from gateway.chat.upstreams.anthropic import Anthropic
from gateway.chat.upstreams.base import Job, Upstream
from gateway.json import member


class Messages(Operation):
    """A message, at once or as a stream."""

    action = "messages"
    keeps_raw = True
    passed_headers = "anthropic-"
    # Adaptive thinking and an effort leave to the model whether it thinks.
    capabilities = CAPABILITIES | {
        "reasoning": lambda body: member(body, "thinking", "type") == "enabled"
    }

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        if isinstance(upstream, Anthropic):
            return await passing.complete(upstream, job, context)
        return await translating.complete(upstream, job, context)

    async def open(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> OpenedStream:
        if isinstance(upstream, Anthropic):
            return await passing.open_stream(upstream, job, context)
        return await translating.open_stream(upstream, job, context)


class CountTokens(Messages):
    """How many tokens a message has: counted by its own kind of upstream, else an estimate."""

    action = "messages.count_tokens"
    can_stream = False
    is_budgeted = False

    async def complete(
        self, upstream: Upstream, job: Job, context: ChatContext
    ) -> bytes:
        if isinstance(upstream, Anthropic):
            return await passing.count(upstream, job, context)
        tokens = estimate(prompt_length(job.request.body))
        return json.dumps({"input_tokens": tokens, "estimated": True})


MESSAGES, COUNT_TOKENS = Messages(), CountTokens()
