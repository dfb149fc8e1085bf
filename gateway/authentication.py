"""Who is calling: a gateway key, or the identity headers of a trusted proxy.

`headers` find a name in lower case, `peer` is the address of the connection's other end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.errors import ForbiddenError, UnauthorizedError
from gateway.identity import NAME_RULE, Caller, bearer_token, is_name
from gateway.keys import MISS, Miss, cached_caller, look_up
from webhooks_core.network.addresses import IPNetwork


def authenticate(headers: Mapping[str, str], peer: str) -> Caller:
    """Return the caller of a request. Raises UnauthorizedError.

    A bearer token decides alone, with any identity headers. At most one query, and
    none while the key is cached.
    """
    caller = authenticate_cached(headers, peer)
    if caller is not MISS:
        return caller
    return _valid(look_up(_key(headers) or ""))


def authenticate_cached(headers: Mapping[str, str], peer: str) -> Caller | Miss:
    """Return the caller without touching the database, or MISS: then ask authenticate().

    For an event loop. Raises UnauthorizedError.
    """
    token = _key(headers)
    if token is None:
        return _from_headers(headers, peer)
    caller = cached_caller(token)
    return caller if caller is MISS else _valid(caller)


def require_scope(caller: Caller, scope: str) -> None:
    """Raise ForbiddenError for a caller without a scope."""
    if scope not in caller.rights.scopes:
        raise ForbiddenError(f"This needs a gateway key with the scope {scope}.")


def _key(headers: Mapping[str, str]) -> str | None:
    """Return the key that a request carries: as a bearer token, else where others expect it.

    Clients of Anthropic send `x-api-key`, those of Azure `api-key`.
    """
    token = bearer_token(headers.get("authorization"))
    if token is not None or "x-tenant-id" in headers or "x-principal-id" in headers:
        return token
    return headers.get("x-api-key") or headers.get("api-key") or None


def _valid(caller: Caller | None) -> Caller:
    if caller is None:
        raise UnauthorizedError("The gateway key is not valid.", refused=True)
    return caller


def _from_headers(headers: Mapping[str, str], peer: str) -> Caller:
    tenant, principal = headers.get("x-tenant-id"), headers.get("x-principal-id")
    if tenant is None and principal is None:
        raise UnauthorizedError
    if not _is_trusted(headers, peer):
        raise UnauthorizedError(
            "Identity headers are accepted from trusted proxies only."
        )
    if not (is_name(tenant or "") and is_name(principal or "")):
        raise UnauthorizedError(
            f"Send both X-Tenant-Id and X-Principal-Id: {NAME_RULE} each."
        )
    return Caller(tenant or "", principal or "")


def _is_trusted(headers: Mapping[str, str], peer: str) -> bool:
    """Return True if a peer's identity headers count; forwarding headers never make it trusted.

    On a local instance, a loopback peer that forwards a request is not trusted: no setting
    names that proxy.
    """
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    if settings.LOCAL and address.is_loopback and _is_forwarded(headers):
        return False
    return any(
        address in network
        for network in _networks(tuple(settings.GATEWAY_TRUSTED_PROXIES))
    )


def _is_forwarded(headers: Mapping[str, str]) -> bool:
    names = map(str.lower, headers)
    return any(name == "forwarded" or name.startswith("x-forwarded-") for name in names)


@lru_cache(maxsize=4)
def _networks(texts: tuple[str, ...]) -> tuple[IPNetwork, ...]:
    return tuple(map(ip_network, texts))


class GatewayAuthentication(BaseAuthentication):
    """Refuses every request of an unknown caller; `request.user` is a Caller."""

    def authenticate(self, request: Request) -> tuple[Caller, None]:
        peer = request.META.get("REMOTE_ADDR") or ""
        return authenticate(request.headers, peer), None


class GatewayScheme(OpenApiAuthenticationExtension):
    target_class = GatewayAuthentication
    name = ["gatewayKey", "gatewayTenant", "gatewayPrincipal"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        key, tenant, principal = self.name
        return [{key: []}, {tenant: [], principal: []}]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        header = {
            "type": "apiKey",
            "in": "header",
            "description": "Accepted only from trusted proxies, and locally.",
        }
        return [
            {"type": "http", "scheme": "bearer", "description": "A gateway key."},
            header | {"name": "X-Tenant-Id"},
            header | {"name": "X-Principal-Id"},
        ]
