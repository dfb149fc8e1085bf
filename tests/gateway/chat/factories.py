"""Rows of the LLM gateway for tests."""

from __future__ import annotations

from datetime import date

from django.utils import timezone
from factory.declarations import LazyFunction, RelatedFactory, Sequence
from factory.django import DjangoModelFactory

from gateway.chat.models import (
    LoggedRequest,
    ModelEndpoint,
    ModelPrice,
    ModelTarget,
    UsageDay,
    UsageRecord,
)
from webhooks_core.ids import public_id


class ModelTargetFactory(DjangoModelFactory[ModelTarget]):
    class Meta:
        model = ModelTarget

    base_url = "http://127.0.0.1:1/v1/"
    model = "there"
    api_key = "sk-1"


class ModelEndpointFactory(DjangoModelFactory[ModelEndpoint]):
    """An endpoint with one target; `target__model="…"` changes the target."""

    class Meta:
        model = ModelEndpoint
        skip_postgeneration_save = True

    name = Sequence(lambda n: f"endpoint-{n}")
    upstream = "openai"
    target = RelatedFactory(ModelTargetFactory, factory_related_name="endpoint")


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


class UsageRecordFactory(DjangoModelFactory[UsageRecord]):
    class Meta:
        model = UsageRecord

    created_at = LazyFunction(timezone.now)
    tenant = "acme"
    principal = "ada"
    model = "echo"
    status = 200
    streamed = True
    duration_ms = 1


class LoggedRequestFactory(DjangoModelFactory[LoggedRequest]):
    class Meta:
        model = LoggedRequest

    public_id = LazyFunction(lambda: public_id("req_"))
    created_at = LazyFunction(timezone.now)
    tenant = "acme"
    principal = "ada"
    request_id = Sequence(lambda n: f"request-{n}")
    operation = "chat.completions"
    model = "small"
    answered_by = "small"
    status = 200
    streamed = True
    duration_ms = 1
    excerpt = "Say hello"
    prompt = '{"messages":[{"role":"user","content":"Say hello"}]}'
    answer = '[{"text":"Hello","reasoning":"","refusal":"","tool_calls":[],"finish_reason":"stop"}]'
