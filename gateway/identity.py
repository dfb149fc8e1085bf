"""Who may say who is calling: names, and the peers whose headers are believed. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

NAME = re.compile(r"[A-Za-z0-9._:@-]{1,128}")
# A server joins repeated headers with commas: whichever of them is a bearer's, the first counts.
BEARER = re.compile(r"(?:.*?,\s*)??bearer(?:$|\s)(.*)", re.IGNORECASE | re.DOTALL)
SYSTEM = "system"


def is_name(text: str) -> bool:
    """Tell whether a text can name a tenant or a principal."""
    return NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: a principal of a tenant; `key_id` is None for header identity."""

    tenant: str
    principal: str
    key_id: int | None = None


@dataclass(frozen=True, slots=True)
class HeaderTrust:
    """The peers whose `X-Tenant-Id` and `X-Principal-Id` are believed.

    `direct_loopback` is for a local instance: a loopback peer that forwards for somebody
    else is then not believed, since nobody chose that proxy on purpose.
    """

    networks: tuple[Network, ...]
    direct_loopback: bool

    @classmethod
    def of(cls, networks: Iterable[str], *, direct_loopback: bool) -> Self:
        return cls(tuple(map(ipaddress.ip_network, networks)), direct_loopback)

    def covers(self, peer: str, *, forwarded: bool) -> bool:
        """Tell whether a peer's headers count; `peer` is its literal address.

        `forwarded` says that the request carries `Forwarded` or `X-Forwarded-*`: whatever
        these claim never makes a peer trusted.
        """
        try:
            address = ipaddress.ip_address(peer.partition("%")[0])
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        if forwarded and self.direct_loopback and address.is_loopback:
            return False
        return any(address in network for network in self.networks)


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer …`, malformed or not; None without one.

    Other schemes are none of ours: a proxy may have its own.
    """
    match = BEARER.fullmatch((authorization or "").strip())
    return match[1].strip() if match else None
