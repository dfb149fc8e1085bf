"""Reading the part `webhooks` of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.conf import settings

from gateway.configuration.shapes import StaticSubscription, WebhookSettings
from gateway.configuration.yaml import Value, has, identity_name, present
from gateway.webhooks import EVENT_TYPES, url_policy
from webhooks_core.network.url_policy import UrlRefusedError

MAX_SECRET = 256


def webhooks(value: Value, *, environ: Mapping[str, str]) -> WebhookSettings:
    default = WebhookSettings()
    keys = value.mapping(tuple(WebhookSettings.__slots__))
    pause = partial(Value.seconds, minimum=0, maximum=3600)
    read = WebhookSettings(
        enabled=present(keys, "enabled", Value.boolean, default.enabled),
        max_attempts=present(
            keys,
            "max_attempts",
            partial(Value.integer, minimum=1, maximum=100),
            default.max_attempts,
        ),
        base_backoff_s=present(keys, "base_backoff_s", pause, default.base_backoff_s),
        max_backoff_s=present(keys, "max_backoff_s", pause, default.max_backoff_s),
        # A shift of the worker ends its open requests well within its own time-out.
        timeout_s=present(
            keys,
            "timeout_s",
            partial(Value.seconds, minimum=0.1, maximum=60),
            default.timeout_s,
        ),
        subscriptions=present(
            keys, "subscriptions", partial(_subscriptions, environ=environ), ()
        ),
    )
    if read.max_backoff_s < read.base_backoff_s:
        (keys.get("max_backoff_s") or keys["base_backoff_s"]).fault(
            "max_backoff_s is below base_backoff_s"
        )
    return read


def _subscriptions(
    value: Value, *, environ: Mapping[str, str]
) -> tuple[StaticSubscription, ...]:
    seen: set[tuple[str, str]] = set()
    found = []
    for item in value.items():
        subscription = _subscription(item, environ)
        if subscription is None:
            continue
        if (key := (subscription.tenant_id, subscription.url)) in seen:
            item.fault("this tenant_id and url are given twice")
        seen.add(key)
        found.append(subscription)
    return tuple(found)


def _subscription(
    value: Value, environ: Mapping[str, str]
) -> StaticSubscription | None:
    keys = value.mapping(("tenant_id", "url", "event_types", "secret", "description"))
    if not has(value, keys, ("tenant_id", "url", "secret")):
        return None
    tenant_id, url = identity_name(keys["tenant_id"]), _webhook_url(keys["url"])
    secret = _signing_secret(keys["secret"], environ)
    if tenant_id is None or url is None or secret is None:
        return None
    return StaticSubscription(
        tenant_id=tenant_id,
        url=url,
        event_types=present(keys, "event_types", _event_types, ()),
        secret=secret,
        description=present(keys, "description", partial(Value.text, maximum=1000), ""),
    )


def _webhook_url(value: Value) -> str | None:
    """Return a URL of good form; where its host leads is checked at every connection."""
    url = value.text()
    try:
        url_policy(base_url=settings.BASE_URL, local=settings.LOCAL).check_syntax(
            url or "https://unread.invalid"
        )
    except UrlRefusedError as error:
        value.fault(str(error))
    return url


def _signing_secret(value: Value, environ: Mapping[str, str]) -> str | None:
    secret = value.secret(environ)
    minimum = settings.GATEWAY_MIN_SECRET_LENGTH
    if secret is None:
        return None
    if not (secret.isascii() and secret.isprintable()):
        value.fault("must be printable ASCII")
    elif not minimum <= len(secret) <= MAX_SECRET:
        value.fault(f"must have {minimum} to {MAX_SECRET} characters")
    return secret


def _event_types(value: Value) -> tuple[str, ...]:
    named = [(item, item.text()) for item in value.items()]
    known = [name for name, it in EVENT_TYPES.items() if it.subscribable]
    for item, name in named:
        if name is not None and name not in known:
            item.fault(f"unknown event type; known are {', '.join(known)}")
    return tuple(dict.fromkeys(name for _, name in named if name))
