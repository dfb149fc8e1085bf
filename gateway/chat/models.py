"""Chat's tables: models, budgets and prices, which operators edit; use, which is counted."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Now

from gateway.chat.tokens import Usage
from webhooks_core.secrets import EncryptedTextField

if TYPE_CHECKING:
    from gateway.configuration.shapes import BudgetEntry, ModelEntry

OPTIONAL = {"null": True, "blank": True}


class DefinedRow(models.Model):
    """A name, and an entry of the configuration file as YAML."""

    name = models.CharField(max_length=128, unique=True)
    definition = models.TextField(
        help_text="As YAML, like an entry of the configuration file, without its name."
    )
    is_active = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ModelEndpoint(DefinedRow):
    """A model of the admin: a name that callers use, and an entry of `models:`."""

    api_key = EncryptedTextField(
        blank=True,
        default="",
        help_text="Of each target without one. It is stored encrypted and never shown.",
    )

    class Meta(DefinedRow.Meta):
        pass

    def entry(self) -> ModelEntry:
        """Return the row as an entry. Raises EntryError, SecretUnreadableError."""
        from gateway import configuration  # with pydantic, which few commands need

        key = str(self.api_key.decrypt()).strip()
        return configuration.model(self.name, self.definition, key)


class Budget(DefinedRow):
    """A budget of the admin; like an entry of `budgets:`."""

    class Meta(DefinedRow.Meta):
        pass

    def entry(self) -> BudgetEntry:
        """Return the row as an entry of the configuration. Raises EntryError."""
        from gateway import configuration  # with pydantic, which few commands need

        return configuration.budget(self.name, self.definition)


def _price(help_text: str, **options: Any) -> models.DecimalField[Any, Any]:
    return models.DecimalField(
        max_digits=12,
        decimal_places=6,
        validators=[MinValueValidator(0)],
        help_text=help_text,
        **options,
    )


class ModelPrice(models.Model):
    """What a million tokens of a model cost; counts for requests from now on.

    A price that is null is that of the prompt's other tokens.
    """

    model = models.CharField(max_length=128, unique=True)
    prompt_price = _price("Of a million tokens sent in.")
    completion_price = _price("Of a million tokens that came back.")
    cached_input_price = _price(
        "Of a million tokens read from the cache; empty means the prompt price.",
        **OPTIONAL,
    )
    cache_write_price = _price(
        "Of a million tokens written to the cache; empty means the prompt price.",
        **OPTIONAL,
    )
    updated_at = models.DateTimeField(auto_now=True, db_default=Now())

    class Meta:
        ordering = ["model"]

    def __str__(self) -> str:
        return self.model

    def cost(self, usage: Usage) -> Decimal:
        """Return what tokens cost, in millionths of the currency."""
        cached, written = usage.cached_tokens, usage.cache_write_tokens
        parts = (
            (usage.prompt_tokens - cached - written, self.prompt_price),
            (cached, _default(self.cached_input_price, self.prompt_price)),
            (written, _default(self.cache_write_price, self.prompt_price)),
            (usage.completion_tokens or 0, self.completion_price),
        )
        return sum((count * price for count, price in parts), Decimal(0))


def _default(price: Decimal | None, default: Decimal) -> Decimal:
    return default if price is None else price


class Counted(models.Model):
    """Sums that only grow. `cost_nano` is in billionths of the prices' currency.

    `estimated_requests` counts those whose tokens or cost are in part an estimate.
    """

    requests = models.BigIntegerField(default=0)
    failures = models.BigIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)
    cost_nano = models.BigIntegerField(default=0)
    estimated_requests = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


class RequestRecord(models.Model):
    """One request: what was asked, what answered, what it used, or why it was refused.

    `requested` is the model that the request names, `model` the one that answered; it is empty if
    the request was refused before a call (404, 429), and then counts in no sum. Tokens are null if
    they are not known. `estimated`: at least one of the counts is an estimate from the length of
    the text, or the cost is that of the dearest model of its kind of upstream. `prompt`, `answer`
    and `tools` are JSON as text, for models and tenants that the file names.
    """

    created_at = models.DateTimeField()
    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    key_id = models.BigIntegerField(null=True)
    operation = models.CharField(max_length=32)
    requested = models.CharField(max_length=128)
    model = models.CharField(max_length=128, blank=True)
    upstream_model = models.CharField(max_length=255, blank=True)
    # For operators only: owners do not see the address that answered.
    base_url = models.CharField("base URL", max_length=2048, blank=True)
    request_id = models.CharField(max_length=128)
    # What Claude Code says of its session.
    session = models.CharField(max_length=128, blank=True)
    status = models.PositiveSmallIntegerField()
    error_status = models.PositiveSmallIntegerField(default=0)
    error = models.TextField(blank=True)
    # What the end of a stream lacked: `no finish reason`, or nothing.
    ending = models.CharField(max_length=32, blank=True)
    streamed = models.BooleanField()
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)
    cache_write_tokens = models.PositiveIntegerField(null=True)
    reasoning_tokens = models.PositiveIntegerField(null=True)
    estimated = models.BooleanField(default=False)
    cost_nano = models.BigIntegerField(null=True)
    first_chunk_ms = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField(default=0)
    # The beginning of the last message, for lists.
    excerpt = models.CharField(max_length=120, blank=True)
    truncated = models.BooleanField(default=False)
    tools = models.TextField(null=True)  # noqa: DJ001 - not kept
    prompt = models.TextField(null=True)  # noqa: DJ001 - not kept
    answer = models.TextField(null=True)  # noqa: DJ001 - not kept

    class Meta:
        verbose_name = "request"
        indexes = [
            models.Index(fields=["tenant", "-id"], name="request_of_tenant"),
            models.Index(fields=["created_at"], name="request_by_age"),
            models.Index(fields=["request_id"], name="request_by_id"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(prompt__isnull=False),
                name="request_with_texts",
            ),
        ]

    def __str__(self) -> str:
        return self.public_id

    @property
    def public_id(self) -> str:
        return f"req_{self.pk}"


class UsageDay(Counted):
    """The usage of one day (UTC) by tenant, principal and model."""

    day = models.DateField()
    tenant = models.CharField(max_length=128)
    principal = models.CharField(max_length=128)
    model = models.CharField(max_length=128)

    class Meta:
        verbose_name = "daily usage"
        verbose_name_plural = "daily usage"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "day", "principal", "model"], name="usage_day_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["-day", "tenant", "principal", "model"], name="usage_day_newest"
            )
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.tenant}/{self.principal} {self.model}"


class UsageTotal(Counted):
    """All usage ever by model and status, for the metrics; retention deletes none of it."""

    model = models.CharField(max_length=128)
    status = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "status"], name="usage_total_once")
        ]

    def __str__(self) -> str:
        return f"{self.model} {self.status}"


class UsageBucket(models.Model):
    """One bucket of a histogram: the number of its values, and their sum in seconds."""

    metric = models.CharField(max_length=32)
    model = models.CharField(max_length=128)
    bucket = models.PositiveSmallIntegerField()
    count = models.BigIntegerField(default=0)
    total = models.FloatField(default=0.0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "model", "bucket"], name="usage_bucket_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.metric} {self.model} {self.bucket}"


class BudgetCounter(models.Model):
    """What one subject of a budget has used in one window, of all processes.

    `subject` names it as a denial does; "" if the budget has one counter. `amount` counts requests,
    tokens, or billionths of the prices' currency. `window` is the Unix time of its start.
    """

    budget = models.CharField(max_length=64)
    subject = models.CharField(max_length=600, blank=True)
    window = models.BigIntegerField()
    # Of the subject, so that a tenant can be erased; "" if the counter is of several.
    tenant = models.CharField(max_length=128, blank=True)
    amount = models.BigIntegerField(default=0)
    # The highest share of the limit that was reported, in percent.
    reported = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "window"], name="budget_counter_once"
            )
        ]
        indexes = [models.Index(fields=["window"], name="budget_counter_age")]

    def __str__(self) -> str:
        return f"{self.budget} {self.subject}"
