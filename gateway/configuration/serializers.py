"""The keys of the configuration, and the rules that concern several of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework.exceptions import ValidationError

from gateway.chat.upstreams.registry import KINDS
from gateway.configuration import fields, shapes
from gateway.configuration.fields import OWN, StrictSerializer, all_different, one_of
from gateway.webhooks import SUBSCRIBABLE, url_policy
from webhooks_core.network.url_policy import UrlRefusedError
from webhooks_core.signing.schemes import is_empty

MAX_SECRET = 256
# The keys of a model's only target; among several, each also has a weight.
TARGET_KEYS = ("base_url", "model", "api_key")


def _check_url(url: str) -> None:
    """Raise ValidationError for a malformed URL; its addresses are checked at each connection."""
    try:
        url_policy(base_url=settings.BASE_URL, local=settings.LOCAL).check_syntax(url)
    except UrlRefusedError as error:
        raise ValidationError(str(error)) from error


def _check_secret(secret: str) -> None:
    minimum = settings.GATEWAY_MIN_SECRET_LENGTH
    if not (secret.isascii() and secret.isprintable()):
        raise ValidationError("must be printable ASCII")
    if not minimum <= len(secret) <= MAX_SECRET:
        raise ValidationError(f"must have {minimum} to {MAX_SECRET} characters")
    if is_empty(secret):
        raise ValidationError("must be more than whsec_ or spaces")


class SubscriptionSerializer(StrictSerializer):
    needs = ("tenant_id", "url", "secret")
    shape = shapes.StaticSubscription

    tenant_id = fields.Text(validators=[fields.check_name])
    url = fields.Text(validators=[_check_url])
    event_types = fields.ListOf(
        kind=fields.distinct,
        child=fields.Text(
            validators=[one_of(SUBSCRIBABLE, "unknown event type; known are")]
        ),
    )
    secret = fields.Secret(validators=[_check_secret])
    description = fields.Text(maximum=1000)


class WebhooksSerializer(StrictSerializer):
    shape = shapes.WebhookSettings

    enabled = fields.Boolean()
    max_attempts = fields.Number(1, 100, int)
    base_backoff_s = fields.Number(0, 3600)
    max_backoff_s = fields.Number(0, 3600)
    # A run of the dispatcher ends its open requests well within the task's time-out.
    timeout_s = fields.Number(0.1, 60)
    subscriptions = fields.ListOf(
        child=SubscriptionSerializer(),
        validators=[
            all_different(
                "this tenant_id and url are given twice",
                key=lambda subscription: (subscription.tenant_id, subscription.url),
            )
        ],
    )

    def validate(self, attrs: dict[str, Any]) -> shapes.WebhookSettings:
        webhooks = shapes.WebhookSettings(**attrs)
        if webhooks.max_backoff_s < webhooks.base_backoff_s:
            key = "max_backoff_s" if "max_backoff_s" in attrs else "base_backoff_s"
            raise ValidationError({key: ["max_backoff_s is below base_backoff_s"]})
        return webhooks


class TargetSerializer(StrictSerializer):
    base_url = fields.BaseURL()
    model = fields.Text()
    api_key = fields.ApiKey()
    weight = fields.Number(1, 1000, int)


class AllowSerializer(StrictSerializer):
    """Who is allowed by name, or the text `everyone`."""

    shape = shapes.Allow
    hint = "must be everyone, or name tenants or principals"

    tenants = fields.ListOf(
        kind=frozenset, child=fields.Text(validators=[fields.check_name])
    )
    principals = fields.ListOf(kind=frozenset, child=fields.Principal())

    def to_internal_value(self, data: Any) -> Any:
        if data == "everyone":
            return {"everyone": True}
        if not isinstance(data, dict):
            raise ValidationError([self.error_messages["invalid"], self.hint])
        return {"everyone": False} | super().to_internal_value(data)

    def lack_of(self, data: Mapping[str, Any]) -> str:
        return "" if data.keys() & self.fields.keys() else self.hint


class TimeoutsSerializer(StrictSerializer):
    shape = shapes.Timeouts

    connect_s = fields.Number(0.01, 86_400)
    first_byte_s = fields.Number(0.01, 86_400)
    idle_s = fields.Number(0.01, 86_400)
    total_s = fields.Number(0.01, 86_400)


class ModelSerializer(StrictSerializer):
    """A model with its `targets`, or with the keys of its only target among its own."""

    needs = ("name", "upstream")
    shape = shapes.ModelEntry

    name = fields.Text(maximum=128)
    upstream = fields.Text(validators=[one_of(KINDS)])
    base_url = fields.BaseURL()
    model = fields.Text()
    api_key = fields.ApiKey()
    targets = fields.ListOf(
        child=TargetSerializer(),
        allow_empty=False,
        error_messages={"empty": "needs at least one target"},
    )
    inference_type = fields.Text(validators=[one_of(shapes.INFERENCE_TYPES)])
    supports = fields.ListOf(
        kind=frozenset,
        child=fields.Text(validators=[one_of(shapes.SUPPORTS)]),
        validators=[all_different("given twice")],
    )
    stream_usage = fields.Boolean()
    allow = AllowSerializer()
    timeouts = TimeoutsSerializer()
    thinking = fields.Text(validators=[one_of(shapes.THINKING)])
    strict_end = fields.Boolean()

    def validate(self, attrs: dict[str, Any]) -> Any:
        only = {key: attrs.pop(key) for key in TARGET_KEYS if key in attrs}
        needs_url = KINDS[attrs["upstream"]].needs_base_url
        targets = attrs.get("targets", [only])
        lacking: Any = {
            number: ["needs base_url"]
            for number, target in enumerate(targets)
            if needs_url and "base_url" not in target
        }
        if "targets" not in attrs and lacking:
            raise ValidationError(lacking[0])
        if "targets" in attrs and only:
            both = [f"has both targets and {', '.join(only)}"]
            raise ValidationError({OWN: both, "targets": lacking})
        if lacking:
            raise ValidationError({"targets": lacking})
        default = {"base_url": "", "model": attrs["name"]}
        attrs["targets"] = tuple(
            shapes.Target(**default | target) for target in targets
        )
        return super().validate(attrs)


class ConfigurationSerializer(StrictSerializer):
    shape = shapes.Configuration

    webhooks = WebhooksSerializer()
    models = fields.ListOf(
        child=ModelSerializer(),
        validators=[
            all_different(
                "a model named {} is given twice", key=lambda model: model.name
            )
        ],
    )
