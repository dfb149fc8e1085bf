"""The parts of a configuration: frozen dataclasses, by which pydantic reads the file.

Code that makes one itself is not checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    model_validator,
)

from gateway.configuration import rules
from gateway.configuration.rules import (
    Address,
    ApiKey,
    Float,
    Int,
    Name,
    Names,
    Principal,
    Text,
    unique,
)
from gateway.event_types import EVENT_TYPES, PUBLISHABLE, SUBSCRIBABLE

Api = Literal["chat", "responses", "messages"]
Upstream = Literal["openai", "anthropic", "echo"]
InferenceType = Literal["chat", "embedding"]
Capability = Literal[
    "streaming", "tools", "vision", "audio", "json_object", "json_schema", "reasoning"
]
# How a model of Anthropic's thinks: as much as it finds right if a request asks for it, or
# also unasked, or up to a number of tokens (models before Claude 4.6).
Thinking = Literal["adaptive", "unasked", "budget"]
Server = Literal["openai", "azure", "mistral", "ollama"]
# What a budget counts, for how long, and what can have a counter of its own.
Counted = Literal["requests", "tokens", "cost"]
Window = Literal["minute", "hour", "day", "week", "month"]
Subject = Literal["key", "principal", "tenant", "model"]

CHAT, EMBEDDING = get_args(InferenceType)
SUPPORTS = get_args(Capability)
ADAPTIVE, UNASKED, BUDGET = get_args(Thinking)
REQUESTS, TOKENS, COST = get_args(Counted)
# The APIs that a server has unless its entry says otherwise.
APIS: dict[str, frozenset[Api]] = {
    "openai": frozenset({"chat"}),
    "anthropic": frozenset({"messages"}),
    "echo": frozenset(get_args(Api)),
}
NANO = 10**9  # of a cost's unit

Pause = Annotated[Float, Field(ge=0, le=3600)]
Seconds = Annotated[Float, Field(ge=0.01, le=86_400)]


class FromFile:
    """A mapping without unknown keys."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class StaticSubscription(FromFile):
    """A subscription that the file declares: read-only everywhere else."""

    tenant_id: Name
    url: rules.SubscribableURL
    secret: rules.Secret = field(repr=False)
    event_types: Names = ()


@dataclass(frozen=True, slots=True)
class DeclaredEventType(FromFile):
    """An event type that callers publish; its `data` is any object, `sample` an example of it.

    Its name has letters, digits and _ in parts that dots join.
    """

    name: Annotated[
        str, Field(max_length=128, pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$")
    ]
    description: Annotated[Text, Field(max_length=1000)]
    sample: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WebhookSettings(FromFile):
    """The keys under `webhooks` (gateway, "Configuration keys"); times in seconds."""

    enabled: StrictBool = True
    max_attempts: Annotated[Int, Field(ge=1, le=100)] = 3
    base_backoff_s: Pause = 0.5
    max_backoff_s: Pause = 30.0
    timeout_s: Annotated[Float, Field(ge=0.1, le=60)] = 10.0
    subscriptions: Annotated[
        tuple[StaticSubscription, ...], unique("tenant_id", "url")
    ] = ()
    event_types: Annotated[tuple[DeclaredEventType, ...], unique("name")] = ()
    publishable: Names = ()

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError for keys that do not agree."""
        own = {kind.name for kind in self.event_types}
        if taken := own & EVENT_TYPES.keys():
            raise ValueError(f"event_types: {min(taken)!r} is one of Signpost's own")
        if unknown := {*self.publishable} - {*PUBLISHABLE}:
            names = ", ".join(PUBLISHABLE)
            raise ValueError(f"publishable: {min(unknown)!r} is none of {names}")
        known = {*SUBSCRIBABLE, *own}
        for subscription in self.subscriptions:
            if unknown := {*subscription.event_types} - known:
                raise ValueError(
                    f"subscriptions: {min(unknown)!r} is no event type; known are "
                    f"{', '.join(sorted(known))}"
                )
        return self


@dataclass(frozen=True, slots=True)
class Target(FromFile):
    """One server for a model's requests; `api_key` is empty when it needs none."""

    base_url: Address = ""
    model: Text = ""
    api_key: ApiKey = field(default="", repr=False)
    weight: Annotated[Int, Field(ge=1, le=1000)] = 1


@dataclass(frozen=True, slots=True)
class Allow(FromFile):
    """Who may use a model: everyone, or the named tenants and principals (`tenant/principal`)."""

    everyone: bool = True
    tenants: frozenset[Name] = frozenset()
    principals: frozenset[Principal] = frozenset()

    def admits(self, *, tenant: str, principal: str) -> bool:
        return (
            self.everyone
            or tenant in self.tenants
            or f"{tenant}/{principal}" in self.principals
        )


def _allow(value: Any) -> Any:
    """Return what Allow() takes, for `everyone` or a mapping of names."""
    if value == "everyone":
        return {}
    if not isinstance(value, dict) or not value or "everyone" in value:
        raise ValueError("must be everyone, or name tenants or principals")
    return {"everyone": False, **value}


@dataclass(frozen=True, slots=True)
class Timeouts(FromFile):
    """The times an upstream may take, in seconds; `total_s` None is no limit."""

    connect_s: Seconds = 5.0
    first_byte_s: Seconds = 60.0
    idle_s: Seconds = 60.0
    total_s: Seconds | None = 600.0


@dataclass(frozen=True, slots=True)
class ModelEntry(FromFile):
    """An entry of `models`: a name that callers use, and its servers.

    `base_url`, `model` and `api_key` are those of the only target, in place of `targets`; an
    empty `model` means the name. `supports` None means everything. `speaks` are the APIs that the
    server has: a request in one of them passes through, others are translated. `drop_params` names
    fields that the upstream does not get. `fallbacks` are other entries, called when this one
    fails. `server` names what differs from OpenAI, and `api_version` is Azure's.
    """

    name: Annotated[Text, Field(max_length=128)]
    upstream: Upstream
    targets: tuple[Target, ...] = ()
    inference_type: InferenceType = "chat"
    supports: frozenset[Capability] | None = None
    stream_usage: StrictBool = True
    allow: Annotated[Allow, BeforeValidator(_allow)] = Allow()
    timeouts: Timeouts = Timeouts()
    thinking: Thinking = ADAPTIVE
    drop_params: Names = ()
    extra_headers: dict[rules.HeaderName, ApiKey] = field(
        default_factory=dict, repr=False
    )
    extra_body: dict[str, JsonValue] = field(default_factory=dict, repr=False)
    fallbacks: Names = ()
    server: Server = "openai"
    api_version: Annotated[str, Field(pattern=r"^[A-Za-z0-9.-]{0,32}$")] = ""
    proxy: rules.Proxy = field(default="", repr=False)
    speaks: frozenset[Api] = frozenset()
    base_url: Address = field(default="", repr=False, compare=False)
    model: Text = field(default="", repr=False, compare=False)
    api_key: ApiKey = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:
        targets = self.targets or (self._only_target,)
        named = (replace(each, model=each.model or self.name) for each in targets)
        object.__setattr__(self, "targets", tuple(named))
        if not self.speaks:
            object.__setattr__(self, "speaks", APIS.get(self.upstream, frozenset()))

    @property
    def _only_target(self) -> Target:
        return Target(self.base_url, self.model or self.name, self.api_key)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError for keys that do not agree."""
        has_own = self.base_url or self.model or self.api_key
        if has_own and self.targets != (self._only_target,):
            raise ValueError("has targets beside base_url, model or api_key")
        if self.upstream != "echo" and not all(t.base_url for t in self.targets):
            raise ValueError("needs base_url")
        if self.server != "openai" and self.upstream != "openai":
            raise ValueError("has server, which only the upstream openai can have")
        return self


@dataclass(frozen=True, slots=True)
class BudgetEntry(FromFile):
    """An entry of `budgets`: how much its requests may use in each window of the UTC calendar.

    `limit` is a number of requests or tokens, or a cost in the currency of the prices. Without
    `tenants`, `principals` and `models` every request counts. `per` says what has a counter of its
    own: with [tenant, model] it is each pair of both.
    """

    name: Annotated[Text, Field(max_length=64)]
    counts: Counted
    window: Window
    limit: Annotated[Float, Field(gt=0, le=10**9)]
    per: Annotated[tuple[Subject, ...], AfterValidator(rules.each_once)] = ()
    tenants: frozenset[Name] = frozenset()
    principals: frozenset[Principal] = frozenset()
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
        of_principals = {each.partition("/")[0] for each in self.principals}
        tenants = self.tenants | of_principals
        return next(iter(tenants)) if len(tenants) == 1 else ""

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError for a limit that cannot be counted, or the name of a key's budget."""
        if KEY_BUDGET.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is the name of a key's own budget")
        if self.counts != COST and not float(self.limit).is_integer():
            raise ValueError(f"the limit of {self.name!r} is not a whole number")
        return self


KEY_BUDGET = re.compile(r"key [0-9]+")


def key_budget_name(key_id: int) -> str:
    """Return the name of a key's own budget; no other budget has it."""
    return f"key {key_id}"


@dataclass(frozen=True, slots=True)
class RequestLogSettings(FromFile):
    """The keys under `request_log`: whose prompts and answers are stored, and for how long.

    A request is stored if its model or its tenant is named: either match is enough. Of a prompt
    and of an answer so many characters are kept.
    """

    models: frozenset[Text] = frozenset()
    tenants: frozenset[Name] = frozenset()
    max_characters: Annotated[Int, Field(ge=1_000, le=1_000_000)] = 50_000
    retention_days: Annotated[Int, Field(ge=1, le=3650)] = 30

    def wants(self, *, model: str, tenant: str) -> bool:
        """Return True if a request is stored."""
        return model in self.models or tenant in self.tenants


@dataclass(frozen=True, slots=True)
class Configuration(FromFile):
    """The content of the file."""

    webhooks: WebhookSettings = WebhookSettings()
    models: Annotated[tuple[ModelEntry, ...], unique("name")] = ()
    budgets: Annotated[tuple[BudgetEntry, ...], unique("name")] = ()
    request_log: RequestLogSettings = field(default_factory=RequestLogSettings)

    @model_validator(mode="after")
    def check(self) -> Self:
        """Raise ValueError for a fallback that is no other entry."""
        names = {entry.name for entry in self.models}
        for entry in self.models:
            if unknown := {*entry.fallbacks} - (names - {entry.name}):
                fallbacks = f"models: fallbacks of {entry.name!r}"
                raise ValueError(f"{fallbacks}: {min(unknown)!r} is no other entry")
        return self
