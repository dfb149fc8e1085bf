"""The parts of a configuration: frozen dataclasses, by which pydantic reads the file.

Code that makes one itself, as from a row of the admin, is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictBool
from pydantic_core import core_schema

from gateway.chat.upstreams.registry import KINDS
from gateway.chat.upstreams.servers import SERVERS
from gateway.configuration import rules
from gateway.configuration.content import RequestLogSettings
from gateway.configuration.rules import (
    NOT_NULL,
    ApiKey,
    BaseURL,
    FromFile,
    Name,
    OneOf,
    Text,
)
from gateway.webhooks import EVENT_TYPES, PUBLISHABLE, SUBSCRIBABLE
from webhooks_core import filters

INFERENCE_TYPES = CHAT, EMBEDDING = ("chat", "embedding")
SUPPORTS = (
    *("streaming", "tools", "vision", "audio"),
    *("json_object", "json_schema", "reasoning"),
)
# How a model of Anthropic's thinks: as much as it finds right if a request asks for it, or
# also unasked, or up to a number of tokens (models before Claude 4.6).
THINKING = ADAPTIVE, UNASKED, BUDGET = ("adaptive", "unasked", "budget")
NANO = 10**9  # of a cost's unit
# What a budget counts, for how long, and what can have a counter of its own.
COUNTED = REQUESTS, TOKENS, COST = ("requests", "tokens", "cost")
WINDOWS = ("minute", "hour", "day", "week", "month")
SUBJECTS = ("key", "principal", "tenant", "model")

# The keys of a model that an endpoint of the admin has as YAML.
OPTIONS = (
    *("drop_params", "extra_headers", "extra_body", "retries", "fallbacks"),
    *("context_fallbacks", "balance", "proxy", "responses", "server", "api_version"),
)
# How the first target of a call is chosen.
BALANCES = WEIGHT, LATENCY = ("weight", "latency")

Pause = Annotated[float, Field(strict=True, ge=0, le=3600)]
Seconds = Annotated[float, Field(strict=True, ge=0.01, le=86_400)]


@dataclass(frozen=True, slots=True)
class StaticSubscription(FromFile):
    """A subscription that the file declares: read-only everywhere else."""

    tenant_id: Name
    url: rules.SubscribableURL
    secret: rules.Secret = field(repr=False)
    event_types: Annotated[tuple[Text, ...], AfterValidator(rules.each_once)] = ()
    description: Annotated[Text, Field(max_length=1000)] = ""
    filter: Annotated[
        rules.JsonObject, rules.accepted_by(filters.compiled), Field(max_length=100)
    ] = field(default_factory=dict)


# Letters, digits and _ in parts that dots join.
EVENT_TYPE_NAME = r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$"
# Signpost's own names, now and later.
RESERVED = re.compile(r"(webhook|endpoint|budget)\.")


def _free_name(name: str) -> str:
    if name in EVENT_TYPES or RESERVED.match(name):
        raise ValueError("is a name of Signpost's own event types")
    return name


@dataclass(frozen=True, slots=True)
class DeclaredEventType(FromFile):
    """An event type that callers publish; its `data` is any object, `sample` an example of it."""

    name: Annotated[
        str,
        Field(strict=True, max_length=128, pattern=EVENT_TYPE_NAME),
        AfterValidator(_free_name),
    ]
    description: Annotated[Text, Field(max_length=1000)]
    sample: rules.JsonObject = field(default_factory=dict)


def _consistent(settings: WebhookSettings) -> WebhookSettings:
    if settings.max_backoff_s < settings.base_backoff_s:
        raise ValueError("max_backoff_s is below base_backoff_s")
    rules.raise_all(_unknown_event_types(settings))
    return settings


def _unknown_event_types(settings: WebhookSettings) -> Iterator[rules.Fault]:
    """Yield each event type of a static subscription that nothing declares."""
    known = [*SUBSCRIBABLE, *(kind.name for kind in settings.event_types)]
    for number, subscription in enumerate(settings.subscriptions):
        for index, name in enumerate(subscription.event_types):
            if name not in known:
                place = ("subscriptions", number, "event_types", index)
                yield place, f"must be one of {', '.join(known)}"


@dataclass(frozen=True, slots=True)
class WebhookSettings(FromFile):
    """The keys under `webhooks` (gateway, "Configuration keys"); times in seconds."""

    enabled: StrictBool = True
    max_attempts: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    base_backoff_s: Pause = 0.5
    max_backoff_s: Pause = 30.0
    # A run of the dispatcher ends its open requests well within the task's time-out.
    timeout_s: Annotated[float, Field(strict=True, ge=0.1, le=60)] = 10.0
    subscriptions: Annotated[
        tuple[StaticSubscription, ...], rules.all_different("tenant_id", "url")
    ] = ()
    event_types: Annotated[
        tuple[DeclaredEventType, ...], rules.all_different("name")
    ] = ()
    publishable: Annotated[
        tuple[Annotated[str, OneOf(PUBLISHABLE)], ...], AfterValidator(rules.each_once)
    ] = ()
    # 410, 413 and the header webhook-delivery of a response are obeyed.
    receiver_control: StrictBool = False


@dataclass(frozen=True, slots=True)
class Target(FromFile):
    """One server for a model's requests; `api_key` is empty when it needs none.

    In the file, an empty `model` means the name of the entry.
    """

    base_url: BaseURL = ""
    model: Text = ""
    api_key: ApiKey = field(default="", repr=False)
    weight: Annotated[int, Field(strict=True, ge=1, le=1000)] = 1


@dataclass(frozen=True, slots=True)
class AllowedNames(FromFile):
    """The tenants and principals that the file names."""

    tenants: frozenset[Name] = frozenset()
    principals: frozenset[rules.Principal] = frozenset()


@dataclass(frozen=True, slots=True)
class Allow:
    """Who may use a model: everyone, or the named tenants and principals."""

    everyone: bool = True
    tenants: frozenset[str] = frozenset()
    principals: frozenset[tuple[str, str]] = frozenset()

    def admits(self, *, tenant: str, principal: str) -> bool:
        return (
            self.everyone
            or tenant in self.tenants
            or (tenant, principal) in self.principals
        )

    @staticmethod
    def __get_pydantic_core_schema__(_: Any, handler: Any) -> core_schema.CoreSchema:
        names = handler.generate_schema(AllowedNames)
        everyone = core_schema.literal_schema(["everyone"])
        return core_schema.no_info_wrap_validator_function(
            _allow,
            names,
            json_schema_input_schema=core_schema.union_schema([everyone, names]),
        )


def _allow(value: Any, read: Any) -> Allow:
    if value == "everyone":
        return Allow()
    if not isinstance(value, dict) or not value:
        raise ValueError("must be everyone, or name tenants or principals")
    names: AllowedNames = read(value)
    return Allow(everyone=False, tenants=names.tenants, principals=names.principals)


@dataclass(frozen=True, slots=True)
class Timeouts(FromFile):
    """The times an upstream may take, in seconds; `total_s` None is no limit."""

    connect_s: Seconds = 5.0
    first_byte_s: Seconds = 60.0
    idle_s: Seconds = 60.0
    total_s: Annotated[Seconds | None, NOT_NULL] = 600.0


@dataclass(frozen=True, slots=True)
class ModelEntry(FromFile):
    """An entry of `models`: a name that callers use, and its servers.

    `supports` None means everything. `strict_end` makes a stream without a finish reason a
    failure. `drop_params` names fields that the upstream does not get; True means those that it
    does not have. `fallbacks` are other entries, called when this one fails, and
    `context_fallbacks` those for requests that are too long for it. `responses`: the upstream
    has OpenAI's Responses API. `server` names what differs from OpenAI, and `api_version` is
    Azure's.
    """

    name: Annotated[Text, Field(max_length=128)]
    upstream: Annotated[str, OneOf(KINDS)]
    targets: Annotated[tuple[Target, ...], AfterValidator(rules.not_empty)] = ()
    inference_type: Annotated[str, OneOf(INFERENCE_TYPES)] = "chat"
    supports: Annotated[frozenset[Annotated[str, OneOf(SUPPORTS)]] | None, NOT_NULL] = (
        None
    )
    stream_usage: StrictBool = True
    allow: Annotated[Allow, Field(json_schema_extra={"default": "everyone"})] = Allow()
    timeouts: Timeouts = Timeouts()
    thinking: Annotated[str, OneOf(THINKING)] = ADAPTIVE
    strict_end: StrictBool = False
    drop_params: rules.FlagOrNames = False
    extra_headers: rules.ExtraHeaders = field(default_factory=dict, repr=False)
    extra_body: rules.ExtraBody = field(default_factory=dict, repr=False)
    retries: Annotated[int, Field(strict=True, ge=0, le=10)] = 0
    fallbacks: rules.Names = ()
    context_fallbacks: rules.Names = ()
    responses: StrictBool = False
    server: Annotated[str, OneOf(SERVERS)] = "openai"
    api_version: Annotated[
        str, Field(strict=True, pattern=r"^([A-Za-z0-9.-]{1,32})?$")
    ] = ""
    balance: Annotated[str, OneOf(BALANCES)] = WEIGHT
    proxy: rules.Proxy = field(default="", repr=False)

    @property
    def falls_back(self) -> bool:
        """True if other endpoints may answer in place of this one."""
        return bool(self.fallbacks or self.context_fallbacks)


@dataclass(frozen=True, slots=True)
class DeclaredModel(ModelEntry):
    """An entry as the file declares it; the keys of an only target may be among its own."""

    base_url: BaseURL = ""
    model: Text = ""
    api_key: ApiKey = field(default="", repr=False)


def _entry(declared: DeclaredModel) -> ModelEntry:
    values = {each.name: getattr(declared, each.name) for each in fields(ModelEntry)}
    only = [key for key in ("base_url", "model", "api_key") if getattr(declared, key)]
    if declared.targets and only:
        raise ValueError(f"has both targets and {', '.join(only)}")
    targets = declared.targets or (
        Target(declared.base_url, declared.model, declared.api_key),
    )
    if KINDS[declared.upstream].needs_base_url and not all(
        target.base_url for target in targets
    ):
        raise ValueError("needs base_url" + " of each target" * bool(declared.targets))
    if declared.responses and declared.upstream != "openai":
        raise ValueError("has responses, which only the upstream openai can have")
    if declared.server != "openai" and declared.upstream != "openai":
        raise ValueError("has server, which only the upstream openai can have")
    targets = tuple(
        replace(target, model=target.model or declared.name) for target in targets
    )
    return ModelEntry(**values | {"targets": targets})


Declared = Annotated[ModelEntry, rules.read_as(DeclaredModel, _entry)]


@dataclass(frozen=True, slots=True)
class BudgetEntry(FromFile):
    """An entry of `budgets`: how much its requests may use in each window of the UTC calendar.

    `limit` is a number of requests or tokens, or a cost in the currency of the prices. Without
    `tenants`, `principals` and `models` every request counts. `per` says what has a counter of its
    own: with [tenant, model] it is each pair of both.
    """

    name: Annotated[Text, Field(max_length=64)]
    counts: Annotated[str, OneOf(COUNTED)]
    window: Annotated[str, OneOf(WINDOWS)]
    limit: Annotated[float, Field(strict=True, gt=0, le=10**9, allow_inf_nan=False)]
    per: Annotated[
        tuple[Annotated[str, OneOf(SUBJECTS)], ...], AfterValidator(rules.each_once)
    ] = ()
    tenants: frozenset[Name] = frozenset()
    principals: frozenset[rules.Principal] = frozenset()
    models: frozenset[Text] = frozenset()

    @property
    def counted_limit(self) -> int:
        """Return the limit in what counters count: requests, tokens, billionths of a cost."""
        return round(self.limit * (NANO if self.counts == COST else 1))

    @property
    def allowance(self) -> str:
        """What it allows, in words: `2 requests an hour`, `a cost of 0.5 a day`."""
        limit = f"{self.limit:,.9f}".rstrip("0").rstrip(".")
        what = f"a cost of {limit}" if self.counts == COST else f"{limit} {self.counts}"
        if limit == "1":
            what = what.removesuffix("s")
        return f"{what} {'an' if self.window == 'hour' else 'a'} {self.window}"

    @property
    def only_tenant(self) -> str:
        """The tenant whose requests alone count; "" if others' may count, too."""
        tenants = self.tenants | {tenant for tenant, _ in self.principals}
        return next(iter(tenants)) if len(tenants) == 1 else ""


def key_budget_name(key_id: int) -> str:
    """Return the name of a key's own budget; no other budget has it."""
    return f"key {key_id}"


KEY_BUDGET = re.compile(r"key [0-9]+")


def _countable(budget: BudgetEntry) -> BudgetEntry:
    if KEY_BUDGET.fullmatch(budget.name):
        raise ValueError(f"{budget.name!r} is the name of a key's own budget")
    if budget.counts != COST and not budget.limit.is_integer():
        raise ValueError(f"the limit of {budget.name!r} is not a whole number")
    if not budget.counted_limit:
        raise ValueError(f"the limit of {budget.name!r} is below a billionth")
    return budget


CheckedBudget = Annotated[BudgetEntry, AfterValidator(_countable)]


@dataclass(frozen=True, slots=True)
class Configuration(FromFile):
    """The content of the file."""

    webhooks: Annotated[WebhookSettings, AfterValidator(_consistent)] = (
        WebhookSettings()
    )
    models: Annotated[
        tuple[Declared, ...],
        rules.all_different("name"),
        AfterValidator(rules.check_fallbacks),
    ] = ()
    budgets: Annotated[tuple[CheckedBudget, ...], rules.all_different("name")] = ()
    request_log: RequestLogSettings = field(default_factory=RequestLogSettings)
