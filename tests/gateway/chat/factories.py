"""Rows of the LLM gateway for tests."""

from datetime import UTC, date, datetime
from typing import Any

from django.utils import timezone
from factory.declarations import LazyFunction, Sequence
from factory.django import DjangoModelFactory

from gateway.chat.apis.openai.chat import CHAT
from gateway.chat.context import ABSENT, ChatContext
from gateway.chat.models import (
    ModelEndpoint,
    ModelPrice,
    RequestRecord,
    UsageDay,
)
from gateway.chat.request import ModelRequest
from gateway.chat.tokens import Usage
from gateway.configuration.shapes import ModelEntry, Target
from gateway.identity import Caller


class ModelEndpointFactory(DjangoModelFactory[ModelEndpoint]):
    """A model of one server with OpenAI's API."""

    class Meta:
        model = ModelEndpoint

    name = Sequence(lambda n: f"endpoint-{n}")
    definition = "{upstream: openai, base_url: 'http://127.0.0.1:1/v1', model: there}"
    api_key = "sk-1"


class ModelPriceFactory(DjangoModelFactory[ModelPrice]):
    class Meta:
        model = ModelPrice

    model = Sequence(lambda n: f"model-{n}")
    prompt_price = 1
    completion_price = 2


class UsageDayFactory(DjangoModelFactory[UsageDay]):
    class Meta:
        model = UsageDay

    day = date(2026, 11, 20)
    tenant = Sequence(lambda n: f"tenant-{n}")
    principal = "ada"
    model = "echo"


class RequestRecordFactory(DjangoModelFactory[RequestRecord]):
    """A request whose prompt and answer are kept."""

    class Meta:
        model = RequestRecord

    created_at = LazyFunction(timezone.now)
    tenant = "acme"
    principal = "ada"
    request_id = Sequence(lambda n: f"request-{n}")
    operation = "chat.completions"
    requested = "small"
    model = "small"
    status = 200
    streamed = True
    duration_ms = 1
    excerpt = "Say hello"
    tools = "[]"
    prompt = '{"messages":[{"role":"user","content":"Say hello"}]}'
    answer = '[{"text":"Hello","reasoning":"","refusal":"","tool_calls":[],"finish_reason":"stop"}]'


NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def ended(
    model: str = "small",
    tenant: str = "acme",
    principal: str = "ada",
    ended_at: datetime = NOON,
    **facts: Any,
) -> ChatContext:
    """Return the context of a request for the model `small` that has ended; `model` answered."""
    caller, wanted = Caller(tenant, principal), ModelRequest("small", True, {})
    target = facts.setdefault("target", Target("", "there"))
    entry = ModelEntry(model, "openai", (target,)) if model else ABSENT
    facts = {"usage": Usage(9, 2), "first_chunk_s": 0.02, "duration_s": 1.5, **facts}
    facts.setdefault("status", 200)
    context = ChatContext(caller, entry, wanted, "req-7", CHAT, **facts)
    context.ended_at = ended_at
    return context
