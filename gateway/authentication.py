"""Who is calling: a gateway key, or the identity headers of a trusted proxy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from gateway.errors import UnauthorizedError
from gateway.identity import Caller, HeaderTrust, bearer_token, is_name
from gateway.keys import MISS, Miss, cached_caller, look_up

__all__ = [
    "MISS",
    "Caller",
    "GatewayAuthentication",
    "Miss",
    "authenticate",
    "authenticate_cached",
    "cached_caller",
    "credentials",
    "look_up",
]


def authenticate(
    *,
    authorization: str | None,
    tenant: str | None,
    principal: str | None,
    peer: str,
    forwarded: bool,
) -> Caller:
    """Return the caller of a request. Raises UnauthorizedError.

    A bearer token decides alone, whatever the identity headers say. `peer` is the address
    of the connection's other end; `forwarded` tells whether the request carries
    `Forwarded` or `X-Forwarded-*`. At most one query, and none while the key is cached.
    """
    token = bearer_token(authorization)
    if token is None:
        return _from_headers(tenant, principal, peer=peer, forwarded=forwarded)
    caller = cached_caller(token)
    return _known(look_up(token) if caller is MISS else caller)


def authenticate_cached(
    *,
    authorization: str | None,
    tenant: str | None,
    principal: str | None,
    peer: str,
    forwarded: bool,
) -> Caller | Miss:
    """Return the caller without touching the database, or MISS: then ask authenticate().

    For an event loop. Raises UnauthorizedError.
    """
    token = bearer_token(authorization)
    if token is None:
        return _from_headers(tenant, principal, peer=peer, forwarded=forwarded)
    caller = cached_caller(token)
    return caller if caller is MISS else _known(caller)


def _known(caller: Caller | None) -> Caller:
    if caller is None:
        raise UnauthorizedError("The gateway key is not valid.", refused=True)
    return caller


def _from_headers(
    tenant: str | None, principal: str | None, *, peer: str, forwarded: bool
) -> Caller:
    if tenant is None and principal is None:
        raise UnauthorizedError
    if not _trust().covers(peer, forwarded=forwarded):
        raise UnauthorizedError(
            "Identity headers are accepted from trusted proxies only."
        )
    if not (is_name(tenant or "") and is_name(principal or "")):
        raise UnauthorizedError(
            "Send both X-Tenant-Id and X-Principal-Id: "
            "1 to 128 of the characters A-Z a-z 0-9 . _ : @ - each."
        )
    return Caller(tenant or "", principal or "")


def _trust() -> HeaderTrust:
    return _trust_of(tuple(settings.GATEWAY_TRUSTED_PROXIES), settings.LOCAL)


@lru_cache(maxsize=4)
def _trust_of(networks: tuple[str, ...], local: bool) -> HeaderTrust:
    return HeaderTrust.of(networks, direct_loopback=local)


def credentials(request: HttpRequest | Request) -> dict[str, Any]:
    """Return the arguments of authenticate() that a Django request gives, WSGI or ASGI."""
    headers: Mapping[str, str] = request.headers
    return {
        "authorization": headers.get("Authorization"),
        "tenant": headers.get("X-Tenant-Id"),
        "principal": headers.get("X-Principal-Id"),
        "peer": request.META.get("REMOTE_ADDR") or "",
        "forwarded": any(
            name == "Forwarded" or name.startswith("X-Forwarded-") for name in headers
        ),
    }


class GatewayAuthentication(BaseAuthentication):
    """Refuses every request whose caller is unknown; `request.user` is a Caller."""

    def authenticate(self, request: Request) -> tuple[Caller, None]:
        return authenticate(**credentials(request)), None


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
            "description": "Accepted from trusted proxies only.",
        }
        return [
            {"type": "http", "scheme": "bearer", "description": "A gateway key."},
            header | {"name": "X-Tenant-Id"},
            header | {"name": "X-Principal-Id"},
        ]
