"""Names and addresses: nothing is called that is not public."""

import socket
import threading
from dataclasses import replace
from typing import Any

import pytest

from tests.receiver import receiver
from tests.running import until
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event
from tests.webhooks_core.network.hostile import pass_time, post, request_to
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Delivery
from webhooks_core.network.errors import Outcome
from webhooks_core.network.url_policy import own_listener

BLOCKED = (Outcome.BLOCKED, "the host leads to an address that is not public")


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"]],
)
def test_a_name_with_an_address_that_is_not_public_is_not_called(names, addresses):
    names["rebind.example"] = [addresses]
    with receiver(204) as server:
        url = server.url.replace("127.0.0.1", "rebind.example")
        answer = post(url, loopback=False)
    assert (answer.outcome, answer.error) == BLOCKED
    assert server.requests == []


LITERAL = ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]")
DISGUISED = ("2130706433", "0x7f.1", "127.1", "0")


@pytest.mark.parametrize("host", [*LITERAL, *DISGUISED])
def test_a_literal_or_disguised_address_is_not_connected_to(host):
    with receiver(204) as server:
        answer = post(server.url.replace("127.0.0.1", host), loopback=False)
    assert (answer.outcome, answer.error) == BLOCKED
    assert server.requests == []


def test_a_url_that_has_become_our_own_listener_is_not_connected_to(plain):
    base_url = "http://127.0.0.1:8000"
    policy = replace(plain.url_policy, own=own_listener(base_url))
    assert policy.allowed_networks("http://localhost:8001/").allows("127.0.0.1")
    for url in (f"{base_url}/hook", "http://localhost:8000/", "http://[::1]:8000/"):
        assert not policy.allowed_networks(url).allows("127.0.0.1")
        assert not policy.allowed_networks(url).allows("93.184.215.14")


def test_names_whose_servers_hang_delay_no_other_name(monkeypatch):
    real, released = socket.getaddrinfo, threading.Event()

    def resolve(host, port, *args: Any, **options: Any) -> Any:
        if host.startswith("slow"):
            released.wait(60)
        return real("127.0.0.1", port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with receiver(204) as server, Sender() as sender:
        base = request_to(server.url)
        slow = [
            base._replace(key=n, queue=n, url=f"http://slow{n % 20}.example/")
            for n in range(2, 62)
        ]
        quick = server.url.replace("127.0.0.1", "quick.example")
        sender.submit([*slow, base._replace(url=quick)])
        outcomes: dict[int, Outcome | None] = {}

        def collect(count: int) -> bool:
            results = sender.collect(wait_s=0.02)
            outcomes.update((result.key, result.outcome) for result in results)
            return len(outcomes) == count

        until(lambda: collect(1), "the quick name")
        pass_time(sender)
        until(lambda: collect(61), "the others")
        released.set()
    assert outcomes.pop(1) == Outcome.OK
    # Not TIMEOUT: no receiver was reached, which counts if our own network is suspect.
    assert set(outcomes.values()) == {Outcome.CONNECT}
    assert len(outcomes) == 60


@pytest.mark.usefixtures("plain", "transactional_db")
def test_a_name_that_changes_between_check_and_use_is_not_called(names, use_profile):
    profile = use_profile(
        url_policy=use_profile().url_policy.__class__(schemes=frozenset({"http"}))
    )
    names["rebind.example"] = [["93.184.215.14"], ["127.0.0.1"]]
    with receiver(204) as server:
        url = server.url.replace("127.0.0.1", "rebind.example")
        profile.url_policy.check(url)  # it was public then
        EndpointFactory.create(url=url)
        publish_event()
        dispatch()
    assert server.requests == []
    assert Attempt.objects.get().outcome == Outcome.BLOCKED
    assert Delivery.objects.get().last_error == BLOCKED[1]


def test_a_name_that_does_not_exist_has_its_own_error(names):
    names["nowhere.example"] = [[]]
    answer = post("http://nowhere.example/")
    assert (answer.outcome, answer.error) == (
        Outcome.DNS,
        "the host name could not be resolved",
    )
