"""Where the deliveries of an endpoint may go, and which may wait."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_network

from webhooks_core import profiles
from webhooks_core.conf import webhook_settings
from webhooks_core.models import Endpoint
from webhooks_core.network.addresses import AllowedNetworks, IPNetwork


def check_url(profile: str, url: str, *, trusted: bool = False) -> None:
    """Check the URL of an endpoint; this resolves its host for up to 2 s. Raises UrlRefusedError.

    A `trusted` endpoint may lie in WEBHOOK_ALLOWED_TARGETS.
    """
    profiles.get(profile).url_policy.check(url, networks=_networks(trusted))


def allowed_networks(endpoint: Endpoint) -> AllowedNetworks:
    """Return the addresses that attempts to an endpoint may connect to."""
    policy = profiles.get(endpoint.profile).url_policy
    return policy.allowed_networks(endpoint.url, networks=_networks(endpoint.trusted))


def _networks(trusted: bool) -> tuple[IPNetwork, ...]:
    return _parse(tuple(webhook_settings.ALLOWED_TARGETS)) if trusted else ()


@lru_cache(maxsize=4)
def _parse(networks: tuple[str, ...]) -> tuple[IPNetwork, ...]:
    return tuple(map(ip_network, networks))


def pending_failure(endpoint: Endpoint) -> str:
    """Return why waiting deliveries of an endpoint fail; "" if they may wait."""
    if endpoint.deleted_at is not None:
        return "endpoint deleted"
    if not endpoint.active and profiles.get(endpoint.profile).inactive_fails_pending:
        return "endpoint inactive"
    return ""
