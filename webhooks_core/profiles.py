"""Profiles: the differences between the webhooks of products, among them when to try again."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from webhooks_core.network.url_policy import UrlPolicy
from webhooks_core.signing.schemes import SCHEMES, SignatureScheme


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The pauses between attempts, in seconds; after the last one a delivery fails.

    `jitter` is the largest fraction by which a pause is lengthened, never shortened.
    `retry_after_cap` is the longest pause, in seconds, that a receiver may ask for with
    `Retry-After`; None ignores the header.
    """

    delays: tuple[float, ...]
    jitter: float = 0.0
    retry_after_cap: float | None = None

    @classmethod
    def exponential(cls, *, base: float, cap: float, max_attempts: int) -> RetryPolicy:
        """Return a policy of doubling pauses, each at most `cap` seconds."""
        # Past 2**64 every pause is the cap: the exponent is bounded, the list is not.
        delays = (min(cap, base * 2.0 ** min(n, 64)) for n in range(max_attempts - 1))
        return cls(delays=tuple(delays), retry_after_cap=cap)

    @property
    def max_attempts(self) -> int:
        return len(self.delays) + 1

    def delay_after(
        self, attempts: int, *, retry_after: float | None = None
    ) -> float | None:
        """Return the pause in seconds after this many attempts; None if the delivery fails.

        A receiver's `retry_after` is honoured between the pause and twice the pause.
        """
        if attempts > len(self.delays):
            return None
        delay = self.delays[attempts - 1]
        if retry_after is not None and self.retry_after_cap is not None:
            delay = max(delay, min(retry_after, 2 * delay, self.retry_after_cap))
        return delay * (1 + random.uniform(0, self.jitter))  # noqa: S311 - spreads load, guards nothing


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
    """The content of an envelope; `metadata` holds ids of request and trace."""

    id: str
    type: str
    owner: str
    created_at: str
    data: Mapping[str, Any]
    metadata: Mapping[str, str]


def plain_envelope(event: EventContext) -> dict[str, Any]:
    """Return the body of a delivery as most products send it."""
    return {
        "id": event.id,
        "type": event.type,
        "created_at": event.created_at,
        "data": event.data,
    }


class SigningContext(NamedTuple):
    """What the headers of an attempt may depend on; `timestamp` is unix time in seconds.

    `secrets` holds the current secret first, then those that still overlap it.
    """

    event_id: str
    event_type: str
    delivery_id: str
    timestamp: int
    body: bytes
    secrets: Sequence[str]


class Sending(NamedTuple):
    """A delivery that is about to be attempted, by primary keys; `body` is that of its event."""

    delivery: int
    endpoint: int
    event: int
    event_type: str
    body: bytes


class Prepared(NamedTuple):
    """What an attempt sends in place of its event's body, and the headers besides all others."""

    body: bytes
    headers: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before it is stored; `metadata` is for the envelope."""

    type: str
    data: Mapping[str, Any]
    metadata: Mapping[str, str] = field(default_factory=dict)


class NoticeKind(StrEnum):
    DISABLED = "disabled"  # after too many failures in a row
    RECOVERED = "recovered"  # a success after that


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A change of an endpoint; one that was disabled had `failures` in a row, `error` last."""

    kind: NoticeKind
    profile: str
    owner: str
    endpoint_id: str
    failures: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookProfile:
    """The differences between one product's webhooks and another's.

    `matches` says whether an endpoint's event types include a type. `signature_scheme` is a key of
    `schemes.SCHEMES`. Its headers, and by convention the others of a delivery, start with
    `header_prefix`, by default `X-` and the name. `headers` returns those besides the signature.
    `sample_metadata` is the metadata of sample events. `on_notice` is called after the commit when an
    endpoint is disabled or works again. It runs where deliveries are sent, so slow work belongs
    into a task; its errors are only logged. `names_of` maps the owners of a page's rows to names for
    operators; without an entry they see the owner. `owner_named` returns the owner of a name, or
    raises CommandError. `published` is called in the transaction of publish() with a new event and its
    data. `prepare` returns what each delivery of a claim sends, by its key, or
    the error with which it fails at once; it runs in the claim's transaction, so it reads alone.
    After a response with one of `final_statuses` a delivery is not tried again. With
    `standard_alone` a request has the signature of Standard Webhooks and no other.
    """

    name: str
    event_types: Mapping[str, EventType]
    matches: Callable[[Sequence[str], str], bool]
    headers: Callable[[SigningContext], Mapping[str, str]]
    retry: RetryPolicy
    timeout_s: float
    url_policy: UrlPolicy
    quota: int
    endpoint_prefix: str
    envelope: Callable[[EventContext], dict[str, Any]] = plain_envelope
    event_prefix: str = "evt_"
    delivery_prefix: str = "dlv_"
    signature_scheme: str = "timestamped"
    header_prefix: str = ""
    sample_metadata: Mapping[str, str] = field(default_factory=dict)
    disable_after: int | None = None
    inactive_fails_pending: bool = False
    enabled: bool = True
    on_notice: Callable[[Notice], None] | None = None
    names_of: Callable[[Collection[str]], Mapping[str, str]] | None = None
    owner_named: Callable[[str], str] = str
    published: Callable[[Any, Mapping[str, Any]], None] | None = None
    prepare: Callable[[Sequence[Sending]], Mapping[int, Prepared | str]] | None = None
    final_statuses: frozenset[int] = frozenset()
    standard_alone: bool = False

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

    @property
    def offered(self) -> list[EventType]:
        """The event types that an endpoint receives when it lists them."""
        types = self.event_types.items()
        return [each for name, each in types if self.matches([name], name)]

    @property
    def everything(self) -> list[str]:
        """The list of event types that means all events: an empty one where that does."""
        if any(self.matches([], name) for name in self.event_types):
            return []
        return [each.name for each in self.offered]

    def receives_all(self, listed: Sequence[str]) -> bool:
        """Return True if a list of event types means all events."""
        every = self.everything
        return set(listed) >= set(every) if every else not listed

    def delivery_headers(self, context: SigningContext) -> dict[str, str]:
        """Return the headers of one attempt: the product's own and those of the signature."""
        if self.standard_alone:
            return dict(self.headers(context))
        signed = self.scheme.sign(context.secrets, context.timestamp, context.body)
        return {**self.headers(context), **signed.named(self.header_prefix)}


# By name; each product registers its own.
PROFILES: dict[str, WebhookProfile | Callable[[], WebhookProfile]] = {}


def register(profile: WebhookProfile) -> None:
    """Register a product's profile; called from its AppConfig.ready."""
    PROFILES[profile.name] = profile


def register_later(name: str, make: Callable[[], WebhookProfile]) -> None:
    """Register a profile that is made when it is first asked for: many commands need none."""
    PROFILES[name] = make


def get(name: str) -> WebhookProfile:
    """Return a registered profile. Raises KeyError."""
    profile = PROFILES[name]
    if not isinstance(profile, WebhookProfile):
        profile = PROFILES[name] = profile()
    return profile


def find(name: str) -> WebhookProfile | None:
    """Return a registered profile; None if its product is not installed."""
    return get(name) if name in PROFILES else None


def registered() -> Sequence[WebhookProfile]:
    return tuple(map(get, [*PROFILES]))
