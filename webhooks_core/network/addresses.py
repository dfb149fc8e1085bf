"""Which network addresses a webhook may be sent to. Pure: no sockets, no settings."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA's special-purpose registries. A table of our own, because `is_global` differs between
# Python releases and calls some relays global (NAT64, 6to4, site-local).
_NOT_PUBLIC: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local: cloud metadata
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        # Parts of _GLOBAL_UNICAST that are not for hosts.
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries any IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# IANA has allocated no other IPv6 addresses as global unicast.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


def is_public(address: Address) -> bool:
    """Return True if an address belongs to a host on the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _GLOBAL_UNICAST:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


class BlockedAddressError(OSError):
    """The host leads to an address that no webhook may be sent to."""


@dataclass(frozen=True, slots=True)
class AllowedNetworks:
    """The addresses that a request may go to: public ones and those of `networks`.

    `nothing` overrides the rest: no address is allowed.
    """

    loopback: bool = False
    networks: tuple[IPNetwork, ...] = ()
    nothing: bool = False

    def allows(self, text: str) -> bool:
        """Return True if a literal address, as a socket has it, may be connected to."""
        if self.nothing:
            return False
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        if address.is_loopback and self.loopback:
            return True
        return is_public(address) or any(
            address in network for network in self.networks
        )

    def allows_all(self, texts: Iterable[str]) -> bool:
        return all(self.allows(text) for text in texts)
