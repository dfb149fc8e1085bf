"""What a product tells the engine about its webhooks, on one page, and where it is registered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.retry import RetryPolicy
from webhooks_core.signing.schemes import SCHEMES, SignatureScheme


@dataclass(frozen=True, slots=True)
class EventType:
    """A kind of event; `sample` is the `data` of a synthetic one, `schema` its JSON Schema."""

    name: str
    description: str
    sample: Mapping[str, Any]
    schema: Mapping[str, Any] = field(default_factory=dict)
    subscribable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EventContext:
    """An event as a product's envelope sees it; `context` holds ids of request and trace."""

    id: str
    type: str
    owner: str
    created_at: str
    data: Mapping[str, Any]
    metadata: Mapping[str, str]


class SigningContext(NamedTuple):
    """One attempt as a product's headers see it; `timestamp` is unix time in seconds.

    `secrets` holds the current secret first, then those that a rotation still honours.
    """

    event_id: str
    event_type: str
    delivery_id: str
    timestamp: int
    body: bytes
    secrets: Sequence[str]


@dataclass(frozen=True, slots=True)
class PingEvent:
    """A test event, before it is stored; `context` is what the envelope needs beside it."""

    type: str
    data: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)


class OwnerInfo(NamedTuple):
    """Who an owner is for operators: a name, and the row (`app.model`, key) that it is."""

    name: str
    model: str
    pk: int


class NoticeKind(StrEnum):
    DISABLED = "disabled"  # failed too often in a row
    ENABLED = "enabled"  # was disabled, and has a new url
    RECOVERED = "recovered"  # a success after at least five failures in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What became of an endpoint; `failures` in a row led to it, `error` is the last one's."""

    kind: NoticeKind
    profile: str
    owner: str
    endpoint_id: str
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookProfile:
    """The dialect of one product: everything in which its webhooks differ from another's.

    `signature_scheme` names one of `schemes.SCHEMES`. Its headers, and by custom the others of
    a delivery, start with `header_prefix`, which is made of the name if it is not given.
    `headers` returns what is sent beside the signature. `sample_context` is the context of
    samples: what the envelope needs of it.
    `ping` makes the test event that operators send, from an endpoint's public id;
    `static_source` tells operators where static endpoints are declared. `on_notice` hears, after
    the commit, when an endpoint is disabled or works again: it runs where deliveries are sent,
    so it hands on what takes time; what it raises is only logged. `name_owners` tells operators
    who the owners of a page's rows are, all at once; those that it leaves out show as they are.
    """

    name: str
    event_types: Mapping[str, EventType]
    matches: Callable[[Sequence[str], str], bool]
    envelope: Callable[[EventContext], dict[str, Any]]
    headers: Callable[[SigningContext], Mapping[str, str]]
    retry: RetryPolicy
    timeout_s: float
    url_policy: UrlPolicy
    quota: int
    endpoint_prefix: str
    event_prefix: str = "evt_"
    delivery_prefix: str = "dlv_"
    signature_scheme: str = "timestamped"
    header_prefix: str = ""
    sample_metadata: Mapping[str, str] = field(default_factory=dict)
    disable_after: int | None = None
    inactive_fails_pending: bool = False
    enabled: bool = True
    ping: Callable[[str], PingEvent] | None = None
    on_notice: Callable[[Notice], None] | None = None
    describe_owners: Callable[[Collection[str]], Mapping[str, OwnerInfo]] | None = None
    static_source: str = "the configuration file"

    def __post_init__(self) -> None:
        if self.signature_scheme not in SCHEMES:
            known = ", ".join(SCHEMES)
            raise ValueError(
                f"signature_scheme {self.signature_scheme!r} is unknown; known are {known}"
            )
        if not self.header_prefix:
            object.__setattr__(self, "header_prefix", f"X-{self.name.title()}")

    @property
    def scheme(self) -> SignatureScheme:
        return SCHEMES[self.signature_scheme]

    @property
    def signature_header(self) -> str:
        return f"{self.header_prefix}-Signature"

    def delivery_headers(self, sending: SigningContext) -> dict[str, str]:
        """Return the headers of one attempt: the product's own and those of the signature."""
        signed = self.scheme.sign(sending.secrets, sending.timestamp, sending.body)
        return {**self.headers(sending), **signed.named(self.header_prefix)}


_profiles: dict[str, WebhookProfile] = {}


def register(profile: WebhookProfile) -> None:
    """Make a product's profile known; called from its AppConfig.ready."""
    _profiles[profile.name] = profile


def get(name: str) -> WebhookProfile:
    """Return a registered profile. Raises KeyError."""
    return _profiles[name]


def find(name: str) -> WebhookProfile | None:
    """Return a registered profile; None when its product is not installed."""
    return _profiles.get(name)


def registered() -> Sequence[WebhookProfile]:
    return tuple(_profiles.values())
