"""The parts of a configuration: frozen dataclasses without Django."""

from __future__ import annotations

from dataclasses import dataclass, field

# What an endpoint is for, and what its `supports` may name.
INFERENCE_TYPES = ("chat", "embedding")
SUPPORTS = (
    *("streaming", "tools", "vision", "audio"),
    *("json_object", "json_schema", "reasoning"),
)
# How a model of Anthropic's thinks: as much as it finds right if a request asks for it, or
# also unasked, or up to a number of tokens (models before Claude 4.6).
THINKING = ADAPTIVE, UNASKED, BUDGET = ("adaptive", "unasked", "budget")


@dataclass(frozen=True, slots=True)
class StaticSubscription:
    """A subscription that the file declares: read-only everywhere else."""

    tenant_id: str
    url: str
    secret: str = field(repr=False)
    event_types: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """The keys under `webhooks` (gateway, "Configuration keys"); times in seconds."""

    enabled: bool = True
    max_attempts: int = 3
    base_backoff_s: float = 0.5
    max_backoff_s: float = 30.0
    timeout_s: float = 10.0
    subscriptions: tuple[StaticSubscription, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """One server for a model's requests; `api_key` is empty when it needs none."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    weight: int = 1


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


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The times an upstream may take, in seconds; `total_s` None is no limit."""

    connect_s: float = 5.0
    first_byte_s: float = 60.0
    idle_s: float = 60.0
    total_s: float | None = 600.0


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """An entry of `models`: a name that callers use, and its servers.

    `supports` None means everything. `strict_end` makes a stream without a finish reason a
    failure.
    """

    name: str
    upstream: str
    targets: tuple[Target, ...]
    inference_type: str = "chat"
    supports: frozenset[str] | None = None
    stream_usage: bool = True
    allow: Allow = Allow()
    timeouts: Timeouts = Timeouts()
    thinking: str = ADAPTIVE
    strict_end: bool = False


@dataclass(frozen=True, slots=True)
class Configuration:
    """The content of the file."""

    webhooks: WebhookSettings = WebhookSettings()
    models: tuple[ModelEntry, ...] = ()
