"""Which addresses are public: every network of the table, and both its neighbours."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.network.addresses import AllowedNetworks, is_public

# From the IANA special-purpose registries, written out anew: the test must not read the table
# that it tests.
NOT_PUBLIC_V4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
NOT_PUBLIC_V6 = [
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "4000::/3",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]


@pytest.mark.parametrize("text", NOT_PUBLIC_V4)
def test_a_special_network_of_ipv4_is_not_public_but_its_neighbours_are(text):
    network = ipaddress.IPv4Network(text)
    middle = network[network.num_addresses // 2]
    for address in (network[0], middle, network[-1]):
        assert not is_public(address)
        assert not is_public(ipaddress.IPv6Address(f"::ffff:{address}"))
    others = [ipaddress.IPv4Network(other) for other in NOT_PUBLIC_V4 if other != text]
    for number in (int(network[0]) - 1, int(network[-1]) + 1):
        if not 0 <= number < 2**32:
            continue
        neighbour = ipaddress.IPv4Address(number)
        assert is_public(neighbour) != any(neighbour in other for other in others)


@pytest.mark.parametrize("text", NOT_PUBLIC_V6)
def test_a_special_network_of_ipv6_is_not_public(text):
    network = ipaddress.IPv6Network(text)
    middle = network[network.num_addresses // 2]
    for address in (network[0], middle, network[-1]):
        assert not is_public(address)


@pytest.mark.parametrize(
    "text",
    [
        "1fff::",
        "2000::",
        "2001:200::",
        "2001:db7:ffff::",
        "2001:db9::",
        "2001:ffff:ffff::1",
        "2003::",
        "2620:4f:7fff::",
        "2620:4f:8001::",
        "3ffe:ffff::",
        "3fff:1000::",
        "3fff:ffff::",
        "4000::",
    ],
)
def test_the_borders_of_ipv6_networks_are_where_the_registry_has_them(text):
    # Only 2000::/3 is handed out; the ends of the list lie just outside of it.
    address = ipaddress.IPv6Address(text)
    assert is_public(address) == (text not in {"1fff::", "4000::"})


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
    ],
)
def test_ordinary_hosts_are_public(text):
    assert is_public(ipaddress.ip_address(text))
    assert AllowedNetworks().allows(text)


@given(address=st.ip_addresses(v=6))
def test_nothing_outside_of_global_unicast_is_public(address):
    if is_public(address) and address.ipv4_mapped is None:
        assert address in ipaddress.IPv6Network("2000::/3")


@given(address=st.ip_addresses(v=4))
def test_a_mapped_address_is_treated_as_the_address_that_it_maps(address):
    mapped = ipaddress.IPv6Address(f"::ffff:{address}")
    assert is_public(mapped) == is_public(address)
    for reach in (AllowedNetworks(), AllowedNetworks(loopback=True)):
        assert reach.allows(str(mapped)) == reach.allows(str(address))


@given(address=st.ip_addresses())
def test_what_the_standard_library_calls_private_is_never_public(address):
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not is_public(address)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_reached_only_where_it_is_allowed(text):
    assert not AllowedNetworks().allows(text)
    assert AllowedNetworks(loopback=True).allows(text)


@pytest.mark.parametrize("text", ["0.0.0.1", "::", "10.0.0.1", "169.254.169.254"])
def test_loopback_opens_nothing_but_loopback(text):
    assert not AllowedNetworks(loopback=True).allows(text)


def test_named_networks_are_reached_and_their_neighbours_are_not():
    networks = (ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("fd00::/64"))
    reach = AllowedNetworks(networks=networks)
    assert reach.allows("10.1.255.255")
    assert reach.allows("::ffff:10.1.0.1")
    assert reach.allows("fd00::1")
    assert reach.allows("8.8.8.8")
    assert not reach.allows("10.2.0.0")
    assert not reach.allows("10.0.255.255")
    assert not reach.allows("fd00:0:0:1::")
    assert not reach.allows("127.0.0.1")


@pytest.mark.parametrize(
    "text", ["", "localhost", "1.2.3", "08.8.8.8", "8.8.8.8 ", "a.b"]
)
def test_a_text_that_is_not_an_address_is_not_allowed(text):
    assert not AllowedNetworks(loopback=True).allows(text)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "fe80::1%1", "::1%1"])
def test_scoped_addresses_are_not_reached(text):
    assert not AllowedNetworks().allows(text)


def test_one_address_that_is_not_public_blocks_all_addresses_of_a_name():
    assert AllowedNetworks().allows_all(["8.8.8.8", "2606:4700::1"])
    assert not AllowedNetworks().allows_all(["8.8.8.8", "127.0.0.1"])
    assert not AllowedNetworks().allows_all(["10.0.0.1", "8.8.8.8"])
