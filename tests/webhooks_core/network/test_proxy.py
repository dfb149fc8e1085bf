"""Deliveries through an egress proxy: to checked addresses only, and its faults are not the receiver's."""

import asyncio
import socket
from ipaddress import IPv6Address

import pytest
from django.utils import timezone

from tests.egress import LOGIN, EgressProxy
from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import EndpointFactory, publish_event
from tests.webhooks_core.network.hostile import (
    EMPTY,
    NOT_HTTP,
    Hostile,
    answering,
    post,
    post_in_vain,
    request_to,
    send,
    server_side,
)
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Delivery, Endpoint, EndpointQueue
from webhooks_core.network import pool, proxy, transport
from webhooks_core.network.addresses import AllowedNetworks, guarded_socket
from webhooks_core.network.errors import Outcome

PUBLIC = "93.184.216.34"
REFUSED = "the egress proxy did not connect (HTTP {})"


@pytest.fixture
def egress(settings):
    """A proxy that the settings name; pytest-socket forbids every other way out."""
    with EgressProxy(login=LOGIN).running() as egress:
        settings.WEBHOOK_PROXY_URL = egress.url
        yield egress


@pytest.mark.parametrize(
    ("addresses", "asked"),
    [
        ([PUBLIC], [f"CONNECT {PUBLIC}:443"]),
        (
            ["93.184.216.35", PUBLIC],
            ["CONNECT 93.184.216.35:443", f"CONNECT {PUBLIC}:443"],
        ),
    ],
)
def test_the_proxy_connects_to_the_checked_address_and_tls_and_host_have_the_name(
    egress, names, authority, addresses, asked
):
    tls = server_side(authority.issue_cert("hook.example"))
    names["hook.example"] = [addresses, ["10.0.0.1"]]  # it moves inside at once
    with Hostile(answering(EMPTY), tls).running() as server:
        egress.routes[f"{PUBLIC}:443"] = server.port
        result = post("https://hook.example/%2Fx?", loopback=False)
    assert (result.outcome, result.address) == (Outcome.OK, PUBLIC)
    start = b"POST /%2Fx? HTTP/1.1\r\nHost: hook.example\r\n"
    assert result.request_head.startswith(start)
    assert b"dXNlcjpwQHNz" not in result.request_head
    assert egress.asked == asked


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "127.0.0.1"])
def test_addresses_that_are_not_public_never_go_through_the_proxy(
    egress, names, address
):
    names["inside.example"] = [[address]]
    with receiver(204) as server:
        outcome = post(server.url.replace("127.0.0.1", "inside.example")).outcome
    assert outcome == (Outcome.OK if address == "127.0.0.1" else Outcome.BLOCKED)
    assert egress.asked == []


def test_no_public_address_of_a_name_is_connected_to_directly(
    egress, names, monkeypatch
):
    names["both.example"] = [[PUBLIC, "127.0.0.1"]]
    opened: list[str] = []

    def note(networks, info):
        opened.append(info[4][0])
        return guarded_socket(networks, info)

    monkeypatch.setattr(pool, "guarded_socket", note)
    with receiver(204) as server:
        result = post(server.url.replace("127.0.0.1", "both.example"))
    assert (result.outcome, opened, egress.asked) == (Outcome.OK, ["127.0.0.1"], [])


MAPPED = "::ffff:93.184.216.34"


@pytest.mark.parametrize(
    ("address", "authority"),
    [
        ("2606:4700::1111", "[2606:4700::1111]:443"),
        # Python 3.13 writes the last part with dots.
        (MAPPED, f"[{IPv6Address(MAPPED)}]:443"),
    ],
)
def test_a_literal_address_is_what_the_proxy_is_told(egress, address, authority):
    assert post(f"https://[{address}]/").error == REFUSED.format(502)
    assert egress.asked == [f"CONNECT {authority}"]


def test_a_tunnel_is_kept_until_the_proxy_dies(settings):
    egress, request = EgressProxy(), request_to(f"http://{PUBLIC}/hook")
    with receiver(204) as server, Sender() as sender:
        egress.routes[f"{PUBLIC}:80"] = server.port
        with egress.running():
            settings.WEBHOOK_PROXY_URL = egress.url
            results = [send(sender, request) for _ in range(2)]
            assert len(egress.asked) == 1
        results.append(send(sender, request))
        with egress.running():
            results.append(send(sender, request))
    assert [result.error for result in results] == ["", "", proxy.UNREACHABLE, ""]
    assert results[3].outcome == Outcome.OK


@pytest.mark.parametrize(
    ("answer", "ending"),
    [
        (b"", (Outcome.CONNECT, None, REFUSED.format(502))),
        (b"HTTP/1.1 403 No\r\n\r\n", (Outcome.CONNECT, None, REFUSED.format(403))),
        (b"HTTP/1.1 403", (None, None, proxy.NO_ANSWER)),
        (None, (Outcome.CONNECT, None, f"no connection within {PATIENCE_S:g} s")),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", NOT_HTTP),
        (b"HTTP/1.1 407 No\r\n\r\n", (None, None, proxy.UNAUTHORIZED)),
        (b"HTTP/1.1 401 No\r\n\r\n", (None, None, proxy.UNAUTHORIZED)),
        (b"SSH-2.0-OpenSSH\r\n\r\n", (None, None, proxy.NOT_HTTP)),
        (b"HTTP/1.1 20\r\n\r\n", (None, None, proxy.NOT_HTTP)),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000, (None, None, proxy.NOT_HTTP)),
        (b"HTTP/1.1 200", (None, None, proxy.NO_ANSWER)),
    ],
)
def test_an_answer_of_the_proxy_is_the_receivers_failure_or_an_outage_of_ours(
    egress, answer, ending
):
    egress.answer, url = answer, f"https://{PUBLIC}/"
    is_late = answer is None
    result = post_in_vain(url, lambda: egress.asked) if is_late else post(url)
    assert (result.outcome, result.status_code, result.error) == ending


@pytest.mark.parametrize("case", ["refuses", "hangs", "unknown"])
def test_a_proxy_that_cannot_be_reached_is_an_outage_of_ours(settings, names, case):
    names["proxy.example"] = [[]]
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        hosts = {"unknown": "proxy.example:3128", "refuses": "127.0.0.1:9"}
        settings.WEBHOOK_PROXY_URL = f"http://{hosts.get(case, f'127.0.0.1:{port}')}"
        full = [socket.socket() for _ in range(4 * (case == "hangs"))]
        for each in full:  # the queue of the server is full: it drops the next one
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        timeout_s = 0.1 if case == "hangs" else PATIENCE_S
        result = post(f"https://{PUBLIC}/", timeout_s=timeout_s)
        for each in full:
            each.close()
    assert (result.outcome, result.error) == (None, proxy.UNREACHABLE)


def test_a_probe_for_the_network_goes_through_the_proxy(egress):
    def can_connect() -> bool:
        url = f"https://{PUBLIC}/"
        return asyncio.run(transport.can_connect(url, AllowedNetworks()))

    assert not can_connect()
    with receiver(204) as server:
        egress.routes[f"{PUBLIC}:443"] = server.port
        assert can_connect()


@pytest.mark.django_db(transaction=True)
def test_while_the_proxy_is_down_no_attempt_counts_and_nothing_is_lost(
    settings, names, use_profile
):
    use_profile(disable_after=1)
    names["hook.example"] = [[PUBLIC]]
    with receiver(204) as server:
        egress = EgressProxy({f"{PUBLIC}:80": server.port})
        with egress.running():
            settings.WEBHOOK_PROXY_URL = egress.url
        EndpointFactory.create(url="http://hook.example/hook")
        publish_event()
        dispatch()
        assert (only_delivery().status, only_delivery().attempts) == (0, 0)
        EndpointQueue.objects.update(next_due_at=timezone.now())
        with egress.running():
            assert dispatch() == 1
    assert Delivery.objects.get().status == 1
    assert Attempt.objects.get().outcome == "ok"
    assert Endpoint.objects.get().consecutive_failures == 0


MALFORMED = """
    proxy:3128 https://proxy:3128 http://proxy http://:3128 http://proxy:0
    http://u:secret@proxy:x http://u:secret@proxy:3128/path http://[::1:3128
"""


@pytest.mark.parametrize("url", MALFORMED.split())
def test_a_malformed_proxy_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match=r"http://host:port") as caught:
        proxy.parse(url)
    assert "secret" not in str(caught.value)
