"""Whom limits count by, and how a rate is written in words."""

import pytest
from django.test import RequestFactory

from recording.throttles import AccountThrottle, client_address


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        ("60/hour", "60 per hour"),
        ("2/s", "2 per second"),
        ("5/min", "5 per minute"),
        ("9/day", "9 per day"),
    ],
)
def test_a_rate_is_written_in_words(settings, rate, words):
    settings.RECORDING_RATES = {"create": rate}
    assert AccountThrottle("create").limit.endswith(f"an account may create {words}")


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "198.51.100.7", "192.0.2.1"),
        (1, "198.51.100.7", "198.51.100.7"),
        (1, "1.1.1.1, 198.51.100.7", "198.51.100.7"),
        (2, "1.1.1.1, 198.51.100.7, 10.0.0.1", "198.51.100.7"),
        (2, "198.51.100.7", "192.0.2.1"),
        (1, "198.51.100.7:5678", "198.51.100.7"),
        (1, "[2001:db8::1]:5678", "2001:db8::"),
        (1, "[2001:db8::1]", "2001:db8::"),
        (1, "unknown", "unknown"),
        (1, "", "192.0.2.1"),
    ],
)
def test_only_trusted_proxies_report_an_address(settings, proxies, forwarded, address):
    settings.TRUSTED_PROXY_COUNT = proxies
    request = RequestFactory().get(
        "/", REMOTE_ADDR="192.0.2.1", HTTP_X_FORWARDED_FOR=forwarded
    )
    assert client_address(request) == address


@pytest.mark.parametrize(
    ("_case", "peer", "address"),
    [
        ("all of a /64 is one", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("its last address too", "2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::"),
        ("the next /64 is another", "2001:db8:1:3::1", "2001:db8:1:3::"),
        ("an IPv4-mapped address is IPv4", "::ffff:192.0.2.7", "192.0.2.7"),
        ("the same in hexadecimal", "::ffff:c000:207", "192.0.2.7"),
        ("a zone tells nothing", "fe80::1%eth0", "fe80::"),
        ("IPv4 stays whole", "192.0.2.7", "192.0.2.7"),
        ("a socket without an address", "", ""),
    ],
)
@pytest.mark.parametrize("proxied", [False, True])
def test_ipv6_is_counted_by_64_bits(settings, proxied, _case, peer, address):
    settings.TRUSTED_PROXY_COUNT = int(proxied)
    name = "HTTP_X_FORWARDED_FOR" if proxied else "REMOTE_ADDR"
    where = {"REMOTE_ADDR": "", name: peer}
    assert client_address(RequestFactory().get("/", **where)) == address
