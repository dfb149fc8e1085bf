"""Our own outage: attempts are postponed and none is counted until a receiver is reached."""

import errno
import socket
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Q

from tests.receiver import receiver
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import (
    EndpointFactory,
    publish_event,
)
from tests.webhooks_core.network.hostile import (
    Hostile,
    read_request,
    request_to,
    says_nothing,
    send,
    send_in_vain,
)
from webhooks_core.dispatch import results
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Delivery, Endpoint
from webhooks_core.network import addresses, pool
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connectivity import Connectivity
from webhooks_core.network.errors import Outcome

NOW = datetime(2026, 11, 21, 8, tzinfo=UTC)
DNS, CONNECT, OK = Outcome.DNS, Outcome.CONNECT, Outcome.OK
A, B = ("alice", "https://a.example/"), ("bob", "https://b.example/")


@pytest.mark.parametrize(
    ("_case", "seen", "suspect"),
    [
        ("two hosts of two owners", [(*A, DNS), (*B, CONNECT)], True),
        ("one owner", [(*A, DNS), ("alice", B[1], DNS)], False),
        ("one host", [(*A, DNS), ("bob", "http://a.example:8080/x", DNS)], False),
        ("this machine", [(*A, DNS), ("bob", "http://127.0.0.1:9/", CONNECT)], False),
        ("one arrived after", [(*A, DNS), (*B, DNS), ("eve", A[1], OK)], False),
        ("one arrived between", [(*A, DNS), ("eve", A[1], OK), (*B, DNS)], False),
        ("one was slow", [(*A, DNS), (*B, DNS), (*B, Outcome.TIMEOUT)], False),
        ("one here", [(*A, DNS), (*B, DNS), ("e", "http://localhost/", OK)], True),
        ("one untried", [(*A, DNS), (*B, None)], False),
        ("one blocked", [(*A, DNS), (*B, Outcome.BLOCKED)], False),
    ],
)
def test_the_network_is_suspected_only_when_all_fails_for_several(_case, seen, suspect):
    network = Connectivity()
    for owner, url, outcome in seen:
        network.record(owner, url, outcome, NOW)
    assert network.has_lost_network(NOW) is suspect


def offline() -> Connectivity:
    network = Connectivity()
    for owner, url in (A, B):
        network.record(owner, url, DNS, NOW)
    assert network.has_lost_network(NOW)
    return network


@pytest.mark.parametrize("first", ["kept", "fresh"])
def test_silence_on_a_kept_connection_does_not_prove_the_network(first):
    """Where everything is swallowed, it is the first that such a network shows."""

    def fall_silent(connection: socket.socket, server: Hostile) -> None:
        if first == "kept":
            read_request(connection)
            connection.sendall(b"HTTP/1.1 204 OK\r\n\r\n")
        says_nothing(connection, server)

    with Hostile(fall_silent).running() as server, Sender() as sender:
        if first == "kept":
            assert send(sender, request_to(server.url)).outcome == OK
        last = send_in_vain(sender, request_to(server.url), lambda: server.heard)
        assert server.accepted == 1
    assert last.outcome == Outcome.TIMEOUT
    assert last.proves_network is (first == "fresh")


def test_old_failures_mean_nothing():
    network = Connectivity()
    network.record(*A, DNS, NOW)
    later = NOW + timedelta(seconds=61)
    network.record(*B, DNS, later)
    assert not network.has_lost_network(later)


def test_only_attempts_that_leave_this_machine_are_postponed():
    network = offline()
    assert network.postpones(*A, AllowedNetworks())
    assert not network.postpones("alice", "http://localhost:9/", AllowedNetworks())
    network.mark_online()
    assert not network.postpones(*A, AllowedNetworks())


def test_one_trial_attempt_is_made_now_and_then():
    network = offline()
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=9)) is None
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=10)) in {1, 2}
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=10)) is None


def test_some_receivers_are_probed_now_and_then():
    network = offline()
    for number in range(20):
        url = f"https://{number}.example/"
        network.postpones(f"owner {number}", url, AllowedNetworks())
    assert len(network.probe_targets(NOW)) == 8
    network.postpones(*A, AllowedNetworks())
    assert network.probe_targets(NOW + timedelta(seconds=1)) == []
    assert len(network.probe_targets(NOW + timedelta(seconds=2))) == 1


class Names:
    """A resolver that knows all names, or, while the network is away, none."""

    def __init__(self) -> None:
        self.is_up = False
        self.asked = 0

    def getaddrinfo(
        self, host: str, port: int, *_: object, **__: object
    ) -> list[object]:
        self.asked += 1
        if not self.is_up:
            raise socket.gaierror(socket.EAI_AGAIN, "no server answers")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def names(monkeypatch, settings) -> Names:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    settings.WEBHOOK_ALLOWED_TARGETS = ["127.0.0.0/8"]
    return names


def subscribe(url: str, *owners: str) -> None:
    for owner in owners:
        named = url.replace("127.0.0.1", f"{owner}.example")
        EndpointFactory.create(url=named, owner=owner, trusted=True)


@pytest.mark.django_db(transaction=True)
class TestDispatcher:
    @pytest.fixture(autouse=True)
    def lost(self, use_profile, monkeypatch) -> list[Connectivity]:
        """What dispatchers have noticed: each outage, when it began."""
        use_profile(disable_after=20)
        lost: list[Connectivity] = []
        real = Connectivity.has_lost_network

        def has_lost_network(self: Connectivity, now: datetime) -> bool:
            if is_lost := real(self, now):
                lost.append(self)
            return is_lost

        monkeypatch.setattr(Connectivity, "has_lost_network", has_lost_network)
        return lost

    def test_without_a_network_deliveries_are_postponed_until_it_is_back(
        self, names, lost
    ):
        with receiver(204) as server:
            subscribe(server.url, "alice", "bob")
            for _ in range(20):
                publish_event("alice")
                publish_event("bob")

            def mend_and_stop() -> bool:
                names.is_up = names.is_up or bool(lost)
                is_open = Q(attempts=0) | Q(claimed_by__isnull=False)
                return not Delivery.objects.filter(is_open, status=0).exists()

            dispatch(stop=mend_and_stop, resident=True)
        failed = Attempt.objects.exclude(outcome="ok").count()
        assert 2 <= failed <= 16  # what was in flight when it was noticed
        assert Delivery.objects.filter(status=1).count() == 40 - failed
        assert not Endpoint.objects.filter(consecutive_failures__gt=8).exists()
        assert not lost[0].is_offline


LACKS = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS]


@pytest.fixture
def lacking(monkeypatch):
    """Return a function that makes sockets fail so many times; it keeps when they did."""

    def lack(number: int, times: float) -> list[float]:
        failed: list[float] = []
        real = addresses.guarded_socket

        def socket_or_not(reach, info):
            if len(failed) < times:
                failed.append(time.monotonic())
                raise OSError(number, "lacking")
            return real(reach, info)

        monkeypatch.setattr(pool, "guarded_socket", socket_or_not)
        return failed

    return lack


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("plain")
class TestLocalFailures:
    @pytest.fixture
    def short_pause(self, monkeypatch):
        monkeypatch.setattr(results, "SECOND", timedelta(milliseconds=20))

    @pytest.mark.parametrize("number", LACKS)
    def test_the_attempt_is_released_and_made_later(self, lacking, number, short_pause):
        lacking(number, 1)
        with receiver(204) as server:
            EndpointFactory.create(url=server.url)
            publish_event()
            assert dispatch(linger=timedelta(seconds=1)) == 1
        assert (
            only_delivery().status,
            only_delivery().attempts,
            only_delivery().interruptions,
        ) == (1, 1, 0)
        assert Endpoint.objects.get().consecutive_failures == 0

    def test_it_does_not_try_again_at_once(self, lacking):
        failed = lacking(errno.EMFILE, float("inf"))
        EndpointFactory.create()
        publish_event()
        dispatch(
            stop=lambda: len(failed) >= 4, resident=True
        )  # each attempt asks twice
        assert (only_delivery().status, only_delivery().attempts) == (0, 0)
        assert failed[2] - failed[1] > 0.5

    def test_an_address_that_cannot_be_used_from_here_is_a_failure(self, lacking):
        lacking(errno.EADDRNOTAVAIL, float("inf"))
        EndpointFactory.create()
        publish_event()
        assert dispatch() == 1
        assert Attempt.objects.get().outcome == "connect"
