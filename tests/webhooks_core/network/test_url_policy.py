"""Which URLs an endpoint may have: every trick of the trade, and what a resolver may answer."""

import socket
import threading
import time
from contextlib import nullcontext
from ipaddress import ip_network
from itertools import count, islice, product
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.running import PATIENCE_S, until
from webhooks_core.network import url_policy
from webhooks_core.network.connection import target_of
from webhooks_core.network.url_policy import UrlPolicy, UrlRefusedError

STRICT = UrlPolicy(own=frozenset({("signpost.example", 443)}))
LOCAL = UrlPolicy(
    local_schemes=frozenset({"http"}), own=frozenset({("localhost", 8000)})
)
OPEN = UrlPolicy(
    schemes=frozenset({"http", "https"}), local_schemes=frozenset({"http", "https"})
)


def answers(*addresses: str) -> Any:
    """Return a getaddrinfo that knows one answer."""

    def resolve(host, port, **_):
        return [(0, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]

    return resolve


@pytest.fixture(autouse=True)
def public_names(monkeypatch):
    """Names lead to a public address; literal ones lead where they say."""
    real = socket.getaddrinfo

    def resolve(host, port, **options):
        try:
            return real(host, port, flags=socket.AI_NUMERICHOST, **options)
        except socket.gaierror:
            if host.rstrip(".") == "localhost":
                return answers("127.0.0.1", "::1")(host, port)
            return answers("93.184.215.14")(host, port)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


ORDINARY = """
    https://hooks.example/in https://hooks.example HTTPS://Hooks.Example/
    https://hooks.example:8443/a/b?c=d&e=%20f https://hooks.example./ https://8.8.8.8/
    https://xn--bcher-kva.example/ https://[2606:4700::1]/ https://[2606:4700:1::0:1]
    https://[2606:4700:0:0:0:0:0:1]/ https://[2606:4700:0000::0001]:8443/in
    https://[2606:4700::0ABC]/ https://[2606:4700::8.8.8.8]/ https://a_b.example/
    https://hooks.example/a;b,c(d)!$'*+=:@~ https://hooks.example?token=1
"""


@pytest.mark.parametrize("url", ORDINARY.split())
def test_ordinary_urls_are_accepted(url):
    STRICT.check(url)


@pytest.mark.parametrize(
    ("_case", "url"),
    [
        ("empty", ""),
        ("no scheme", "hooks.example/in"),
        ("no scheme but slashes", "//hooks.example/in"),
        ("plain http", "http://hooks.example/"),
        ("ftp", "ftp://hooks.example/"),
        ("javascript", "javascript:alert(1)"),
        ("no slashes", "https:hooks.example"),
        ("one slash", "https:/hooks.example"),
        ("three slashes", "https:///hooks.example"),
        ("no host", "https://"),
        ("only a port", "https://:443/"),
        ("only a dot", "https://./"),
        ("a leading dot", "https://.example/"),
        ("two dots", "https://a..example/"),
        ("two trailing dots", "https://hooks.example../"),
        ("a user", "https://user@hooks.example/"),
        ("a user and a password", "https://user:secret@hooks.example/"),
        ("an empty user", "https://@hooks.example/"),
        ("a user that looks like a host", "https://good.example@hooks.example/"),
        ("an escaped at sign", "https://good.example%40hooks.example/"),
        ("a fragment", "https://hooks.example/#x"),
        ("an empty fragment", "https://hooks.example/#"),
        ("a fragment before the host's end", "https://hooks.example#@good.example/"),
        ("port 0", "https://hooks.example:0/"),
        ("port 00", "https://hooks.example:00/"),
        ("port 65536", "https://hooks.example:65536/"),
        ("a negative port", "https://hooks.example:-1/"),
        ("a port that is no number", "https://hooks.example:http/"),
        ("a port of another script", "https://hooks.example:٤٤٣/"),
        ("two ports", "https://hooks.example:443:443/"),
        ("a backslash", "https://hooks.example\\in"),
        ("a backslash before an at sign", "https://evil.example\\@hooks.example/"),
        ("backslashes for slashes", "https:\\\\hooks.example/"),
        ("a space", "https://hooks.example/a b"),
        ("a space in the host", "https://hooks .example/"),
        ("a leading space", " https://hooks.example/"),
        ("a trailing newline", "https://hooks.example/\n"),
        ("a newline in the host", "https://hooks\n.example/"),
        ("a tab in the scheme", "ht\ttps://hooks.example/"),
        ("a tab in the host", "https://hooks\t.example/"),
        ("CR LF and a header", "https://hooks.example/\r\nX-Evil: 1"),
        ("NUL", "https://hooks.example/\0"),
        ("NUL in the host", "https://hooks.example\0.good.example/"),
        ("DEL", "https://hooks.example/\x7f"),
        ("a letter beyond ASCII", "https://bücher.example/"),
        ("full-width letters", "https://\uff48ooks.example/"),
        ("a full-width dot", "https://127\u30020\u30020\u30021/"),
        ("a soft hyphen", "https://hooks\u00ad.example/"),
        ("a right-to-left override", "https://hooks.example/\u202e"),
        ("half a surrogate pair", "https://hooks.example/\ud800"),
        ("an escaped host", "https://%68ooks.example/"),
        ("an escaped dot", "https://127%2e0%2e0%2e1/"),
        ("an escaped NUL in the host", "https://hooks.example%00/"),
        ("an escaped slash in the host", "https://evil.example%2fgood.example/"),
        ("an unclosed bracket", "https://[::1/"),
        ("an unopened bracket", "https://::1]/"),
        ("a name in brackets", "https://[hooks.example]/"),
        ("brackets and more", "https://[::1].hooks.example/"),
        ("an address of nine parts", "https://[1:2:3:4:5:6:7:8:9]/"),
        ("an address with a zone", "https://[2606:4700::1%25eth0]/"),
        ("an address without brackets", "https://::1/"),
        ("a user in brackets without a host", "https://[::1]@"),
        ("over-long", "https://hooks.example/" + "a" * 2048),
    ],
)
def test_malformed_and_deceptive_urls_are_refused(_case, url):
    for policy in (STRICT, LOCAL):
        with pytest.raises(UrlRefusedError):
            policy.check(url)


NOT_PUBLIC = """
    127.0.0.1 127.1 127.0.1 2130706433 0x7f.1 0x7f000001 0177.0.0.1 017700000001 0
    0.0.0.0 10.0.0.1 169.254.169.254 0xa9fea9fe 192.88.99.1 224.0.0.1 255.255.255.255
    localhost localhost. LOCALHOST [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1]
    [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0:127.0.0.1] [64:ff9b::7f00:1]
    [64:ff9b::8.8.8.8] [64:ff9b:1::1] [2001:0:53aa:64c:0:0:0:1] [2002:7f00:1::]
    [fc00::1] [fe80::1] [fe80::1%251] [fec0::1] [ff02::1]
"""


@pytest.mark.parametrize("host", NOT_PUBLIC.split())
def test_hosts_that_are_not_public_are_refused_without_telling_an_address(host):
    with pytest.raises(UrlRefusedError) as caught:
        STRICT.check(f"https://{host}/")
    assert not any(letter.isdigit() for letter in str(caught.value))


THIS_MACHINE = """
    localhost localhost:9000 LocalHost:9000 127.0.0.1:9000 [::1]:9000
    [0:0:0:0:0:0:0:1]:9000 [0000::0001]:9000
"""


@pytest.mark.parametrize("url", [f"http://{host}/in" for host in THIS_MACHINE.split()])
def test_this_machine_is_accepted_by_three_names_where_the_policy_says_so(url):
    LOCAL.check(url)
    with pytest.raises(UrlRefusedError):
        STRICT.check(url)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.2", "127.1", "2130706433", "localhost.", "[::ffff:127.0.0.1]"],
)
def test_no_other_name_of_this_machine_is_accepted(host):
    for policy, scheme in product((LOCAL, OPEN), ("http", "https")):
        with pytest.raises(UrlRefusedError):
            policy.check(f"{scheme}://{host}:9000/")


@pytest.mark.parametrize(
    "host",
    ["localhost.", "LOCALHOST.", "localhost..", "api.localhost.", "A.B.LocalHost"],
)
@pytest.mark.parametrize("policy", [STRICT, LOCAL, OPEN])
def test_names_below_localhost_are_refused_by_name(host, policy, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.215.14"))
    for scheme in policy.schemes:
        with pytest.raises(UrlRefusedError, match="public addresses only"):
            policy.check_syntax(f"{scheme}://{host}/")


def test_localhost_needs_no_resolver_to_be_refused(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answers("93.184.215.14"))
    with pytest.raises(UrlRefusedError, match="public addresses only"):
        STRICT.check("https://localhost/")


def test_https_to_this_machine_stays_refused_where_only_http_is_local():
    with pytest.raises(UrlRefusedError, match="http://"):
        LOCAL.check("https://localhost:9000/")


@pytest.mark.parametrize(
    ("policy", "host", "port"),
    [
        *((LOCAL, host, "8000") for host in ("localhost", "127.0.0.1", "[::1]")),
        *((LOCAL, host, "8000") for host in ("[0::1]", "LOCALHOST")),
        (LOCAL, "127.0.0.1", "08000"),
        *((STRICT, host, "443") for host in ("SIGNPOST.Example", "signpost.example.")),
    ],
)
def test_our_own_listener_is_refused_by_all_its_names(policy, host, port):
    scheme = "http" if policy is LOCAL else "https"
    with pytest.raises(UrlRefusedError, match="itself"):
        policy.check(f"{scheme}://{host}:{port}/v1/webhooks")
    policy.check(f"{scheme}://{host}:8001/v1/webhooks")


@pytest.mark.parametrize("host", ["signpost.example", "signpost.example."])
def test_our_public_name_needs_no_port_to_be_refused(host):
    with pytest.raises(UrlRefusedError, match="itself"):
        STRICT.check(f"https://{host}/")


def test_a_url_may_have_2048_characters_and_no_more():
    url = "https://hooks.example/" + "a" * 2026
    assert len(url) == 2048
    STRICT.check(url)
    with pytest.raises(UrlRefusedError, match="longer than 2048"):
        STRICT.check(url + "a")


@pytest.mark.parametrize(
    "addresses",
    [
        ("127.0.0.1",),
        ("93.184.215.14", "10.0.0.1"),
        ("10.0.0.1", "93.184.215.14"),
        ("2606:4700::1", "::1"),
        ("fe80::1%eth0",),
    ],
)
def test_a_name_of_which_one_address_is_not_public_is_refused(monkeypatch, addresses):
    monkeypatch.setattr(socket, "getaddrinfo", answers(*addresses))
    with pytest.raises(UrlRefusedError, match="public addresses only"):
        STRICT.check("https://rebind.example/")


def test_networks_that_staff_allowed_are_accepted(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", answers("10.1.2.3"))
    STRICT.check("https://inside.example/", networks=(ip_network("10.1.0.0/16"),))
    with pytest.raises(UrlRefusedError):
        STRICT.check("https://inside.example/", networks=(ip_network("10.2.0.0/16"),))


def failing(error: Exception) -> Any:
    def resolve(*_: Any, **__: Any) -> Any:
        raise error

    return resolve


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "does not exist"),
        (socket.gaierror(socket.EAI_NODATA, "unknown"), "does not exist"),
        (UnicodeEncodeError("idna", "", 0, 1, "a label is too long"), "malformed"),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), None),
        (socket.gaierror(socket.EAI_FAIL, "failed"), None),
        (OSError("no descriptors"), None),
        (TimeoutError("the resolver"), None),
    ],
)
def test_a_name_is_refused_only_if_it_cannot_exist(monkeypatch, error, refusal):
    monkeypatch.setattr(socket, "getaddrinfo", failing(error))
    refused = (
        pytest.raises(UrlRefusedError, match=refusal) if refusal else nullcontext()
    )
    with refused:
        STRICT.check("https://hooks.example/")


def test_a_resolver_that_hangs_delays_no_caller_and_leaves_no_queue(monkeypatch):
    release, started = threading.Event(), []

    def hang(host, port, **_):
        started.append(host)
        release.wait(PATIENCE_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    monkeypatch.setattr(url_policy, "RESOLVE_TIMEOUT_S", 0.01)
    names = (f"https://slow{number}.example/" for number in count())
    end = time.monotonic() + PATIENCE_S
    try:
        while len(started) < 16 and time.monotonic() < end:
            STRICT.check(next(names))
        for url in islice(names, 4):
            STRICT.check(url)
    finally:
        release.set()
    until(
        lambda: not url_policy._resolvers.submit(int).exception(PATIENCE_S),
        "a free thread",
    )
    assert len(started) == 16  # those that had no thread in time were not asked at all


hosts = st.text("abAB01.-_%@:[]/\\?#;,é\t\n ", max_size=24)


@given(middle=hosts, scheme=st.sampled_from(["https://", "https:/", "https:", ""]))
def test_what_is_accepted_means_the_same_to_both_parsers(middle, scheme):
    url = f"{scheme}{middle}"
    try:
        STRICT.check_syntax(url)
    except UrlRefusedError:
        return
    client_host, client_port, is_tls = target_of(url).origin
    assert client_host == urlsplit(url).hostname
    assert (client_port, is_tls) == (urlsplit(url).port or 443, True)
    assert "@" not in urlsplit(url).netloc


@pytest.mark.parametrize("url", ["http://[", "http://[::1", "https://a:b:c/", "\0"])
def test_a_malformed_url_allows_no_loopback(url):
    """A row that was written by hand must not stop the dispatcher for the others."""
    assert not LOCAL.allowed_networks(url).loopback
