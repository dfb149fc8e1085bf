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
    )
)
# Only 2000::/3 is handed out as global unicast; these parts of it are not for hosts.
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NOT_PUBLIC_V6: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries any IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Tell whether an address belongs to a host on the public internet."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    return address in _GLOBAL_UNICAST and not any(
        address in network for network in _NOT_PUBLIC_V6
    )


@dataclass(frozen=True, slots=True)
class AllowedNetworks:
    """The addresses that a request may go to: public ones and those named here.

    `nothing` overrides the rest: no address may be connected to.
    """

    loopback: bool = False
    networks: tuple[IPNetwork, ...] = ()
    nothing: bool = False

    def allows(self, text: str) -> bool:
        """Tell whether a literal address, as a socket names it, may be connected to."""
        if self.nothing:
            return False
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        address = mapped or address
        if address.is_loopback and self.loopback:
            return True
        return is_public(address) or self._is_named(address)

    def allows_all(self, texts: Iterable[str]) -> bool:
        return all(self.allows(text) for text in texts)

    def _is_named(self, address: Address) -> bool:
        return any(
            address in network
            for network in self.networks
            if network.version == address.version
        )
