"""Which addresses are public: every network of the table, and both its neighbours."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks_core.network.addresses import AllowedNetworks, is_public

# From the IANA special-purpose registries, written out anew: the test must not read the table
# that it tests.
NOT_PUBLIC_V4 = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12
    192.0.0.0/24 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24
    192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24
    224.0.0.0/4 240.0.0.0/4
"""
NOT_PUBLIC_V6 = """
    ::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:2::/48
    2001:10::/28 2001:20::/28 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20
    4000::/3 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8
"""


@pytest.mark.parametrize("text", [*NOT_PUBLIC_V4.split(), *NOT_PUBLIC_V6.split()])
def test_no_address_of_a_special_network_is_public(text):
    network = ip_network(text)
    for number in (0, network.num_addresses // 2, -1):
        assert not is_public(network[number])


@pytest.mark.parametrize("text", NOT_PUBLIC_V4.split())
def test_the_neighbours_of_a_special_network_of_ipv4_are_public(text):
    network = ip_network(text)
    others = [ip_network(other) for other in NOT_PUBLIC_V4.split() if other != text]
    for number in (int(network[0]) - 1, int(network[-1]) + 1):
        if 0 <= number < 2**32:
            neighbour = IPv4Address(number)
            assert is_public(neighbour) != any(neighbour in other for other in others)


# Only 2000::/3 is handed out.
PUBLIC_V6 = """
    2000:: 2001:200:: 2001:db7:ffff:: 2001:db9:: 2001:ffff:ffff::1 2003:: 2620:4f:7fff::
    2620:4f:8001:: 3ffe:ffff:: 3fff:1000:: 3fff:ffff:: 2606:4700:4700::1111
    2a00:1450:4001::1
"""


@given(address=st.ip_addresses(v=6))
def test_nothing_outside_of_global_unicast_is_public(address):
    if is_public(address) and address.ipv4_mapped is None:
        assert address in IPv6Network("2000::/3")


@given(address=st.ip_addresses(v=4))
def test_a_mapped_address_is_treated_as_the_address_that_it_maps(address):
    mapped = IPv6Address(f"::ffff:{address}")
    assert is_public(mapped) == is_public(address)
    for reach in (AllowedNetworks(), AllowedNetworks(loopback=True)):
        assert reach.allows(str(mapped)) == reach.allows(str(address))


@given(address=st.ip_addresses())
def test_what_the_standard_library_calls_private_is_never_public(address):
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_private or address.is_multicast or address.is_reserved:
        assert not is_public(address)


PUBLIC_V4 = "8.8.8.8 1.1.1.1 100.63.255.255 172.15.255.255 172.32.0.0 ::ffff:8.8.8.8"
LOOPBACK = ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"]
NAMED = AllowedNetworks(networks=(ip_network("10.1.0.0/16"), ip_network("fd00::/64")))
NO_ADDRESSES = ["", "localhost", "1.2.3", "08.8.8.8", "8.8.8.8 ", "a.b", "fe80::1%1"]


@pytest.mark.parametrize(
    ("reach", "texts", "allowed"),
    [
        (AllowedNetworks(), [*PUBLIC_V4.split(), *PUBLIC_V6.split()], True),
        (AllowedNetworks(), [*LOOPBACK, "1fff::", "4000::", "::1%1"], False),
        (AllowedNetworks(nothing=True, loopback=True), ["8.8.8.8", "::1"], False),
        (AllowedNetworks(loopback=True), [*LOOPBACK, "8.8.8.8"], True),
        (AllowedNetworks(loopback=True), ["0.0.0.1", "::", "169.254.169.254"], False),
        (AllowedNetworks(loopback=True), NO_ADDRESSES, False),
        (NAMED, ["10.1.255.255", "::ffff:10.1.0.1", "fd00::1", "8.8.8.8"], True),
        (NAMED, ["10.2.0.0", "10.0.255.255", "fd00:0:0:1::", "127.0.0.1"], False),
    ],
)
def test_public_addresses_and_named_networks_are_reached_alone(reach, texts, allowed):
    assert [reach.allows(text) for text in texts] == [allowed] * len(texts)


def test_one_address_that_is_not_public_blocks_all_addresses_of_a_name():
    assert AllowedNetworks().allows_all(["8.8.8.8", "2606:4700::1"])
    assert not AllowedNetworks().allows_all(["8.8.8.8", "127.0.0.1"])
    assert not AllowedNetworks().allows_all(["10.0.0.1", "8.8.8.8"])
