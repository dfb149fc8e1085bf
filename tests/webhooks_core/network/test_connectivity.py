"""Our own outage: attempts are postponed and none is counted until a receiver is reached."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import Q
from django.utils import timezone

from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.engine import dispatch, only_delivery
from tests.webhooks_core.factories import (
    DispatcherLeaseFactory,
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
from webhooks_core.dispatch import leases, results
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Delivery, DispatcherLease, Endpoint
from webhooks_core.network import pool, resolver, transport
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connectivity import TRIAL_EVERY, Connectivity
from webhooks_core.network.outcomes import Outcome
from webhooks_core.upkeep import stats
from webhooks_core.worker import processes

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
    assert network.is_suspect(NOW) is suspect


def offline() -> Connectivity:
    network = Connectivity()
    for owner, url in (A, B):
        network.record(owner, url, DNS, NOW)
    network.mark_offline(NOW)
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
    assert not network.is_suspect(later)


def test_only_attempts_that_leave_this_machine_are_postponed():
    network = offline()
    assert network.postpones(*A, AllowedNetworks())
    assert not network.postpones("alice", "http://localhost:9/", AllowedNetworks())
    network.mark_online()
    assert not network.postpones(*A, AllowedNetworks())


def test_receivers_without_a_known_failure_are_probed_first():
    network = offline()
    for number in range(20):
        network.postpones(
            f"owner {number}", f"https://{number}.example/", AllowedNetworks()
        )
    network.postpones(*A, AllowedNetworks())
    probed = network.probe_targets(NOW)
    assert len(probed) == 8
    assert A[1] not in [target.url for target in probed]
    network.postpones(*A, AllowedNetworks())
    assert network.probe_targets(NOW + timedelta(seconds=1)) == []
    assert len(network.probe_targets(NOW + timedelta(seconds=2))) == 1


def test_one_trial_attempt_is_made_now_and_then():
    network = offline()
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=9)) is None
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=10)) in {1, 2}
    assert network.trial_queue([1, 2], NOW + timedelta(minutes=10)) is None


def test_dispatchers_in_a_row_make_no_more_trial_attempts_than_one():
    run, tried, runs = timedelta(seconds=20), 0, 6000
    for number in range(runs):
        network, start = Connectivity(NOW), NOW + number * run
        tried += any(network.trial_queue([1], at) for at in (start, start + run))
    expected = runs * run / TRIAL_EVERY
    assert expected / 2 < tried < 2 * expected


def test_one_success_ends_the_outage():
    network = offline()
    assert network.record(*A, OK, NOW)
    network.mark_online()
    assert not network.is_offline


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


def test_a_receiver_is_reached_at_whichever_of_its_addresses_answers(monkeypatch):
    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        tcp = (socket.SOCK_STREAM, 6, "")
        return [
            (socket.AF_INET6, *tcp, ("::1", port, 0, 0)),
            (socket.AF_INET, *tcp, ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with receiver(204) as server:
        url = server.url.replace("127.0.0.1", "both.example")
        assert asyncio.run(transport.can_connect(url, AllowedNetworks(loopback=True)))
    assert server.requests == []


def subscribe(url: str, *owners: str) -> None:
    for owner in owners:
        named = url.replace("127.0.0.1", f"{owner}.example")
        EndpointFactory.create(url=named, owner=owner, trusted=True)


def waiting() -> list[int]:
    return list(Delivery.objects.filter(status=0).values_list("attempts", flat=True))


@pytest.mark.django_db(transaction=True)
class TestDispatcher:
    @pytest.fixture(autouse=True)
    def patient(self, use_profile):
        use_profile(disable_after=20)

    def test_without_a_network_deliveries_are_postponed_until_it_is_back(self, names):
        with receiver(204) as server:
            subscribe(server.url, "alice", "bob")
            for _ in range(20):
                publish_event("alice")
                publish_event("bob")

            def mend_and_stop() -> bool:
                names.is_up = names.is_up or self.is_postponing()
                is_open = Q(attempts=0) | Q(claimed_by__isnull=False)
                return not Delivery.objects.filter(is_open, status=0).exists()

            dispatch(stop=mend_and_stop, run_s=PATIENCE_S)
        failed = Attempt.objects.exclude(outcome="ok").count()
        assert 2 <= failed <= 16  # what was in flight when it was noticed
        assert Delivery.objects.filter(status=1).count() == 40 - failed
        assert not Endpoint.objects.filter(consecutive_failures__gt=4).exists()
        assert DispatcherLease.objects.get().offline_since is None

    def is_postponing(self) -> bool:
        return DispatcherLease.objects.filter(offline_since__isnull=False).exists()

    def test_during_an_outage_no_failure_counts_and_probes_are_rare(self, names):
        subscribe("http://127.0.0.1:9/", "alice", "bob")
        for _ in range(20):
            publish_event("alice")
            publish_event("bob")
        dispatch(stop=self.is_postponing, run_s=PATIENCE_S)
        counted = Endpoint.objects.order_by("pk").values_list
        before = list(counted("consecutive_failures", "status"))
        failed, asked = Attempt.objects.count(), names.asked
        Delivery.objects.filter(status=0).update(next_attempt_at=timezone.now())
        dispatch(run_s=1.5)  # known from the dispatcher before
        assert Attempt.objects.count() == failed
        assert list(counted("consecutive_failures", "status")) == before
        assert names.asked - asked <= 4
        assert self.is_postponing()

    def test_receivers_on_this_machine_are_not_affected(self, names):
        subscribe("http://127.0.0.1:9/", "alice", "bob")
        with receiver(204) as server:
            EndpointFactory.create(url=server.url, owner="carol")
            for owner in ("alice", "bob"):
                publish_event(owner)
            dispatch(stop=self.is_postponing, run_s=PATIENCE_S)
            publish_event("carol")
            publish_event("alice")
            dispatch(stop=lambda: bool(server.requests))
        assert len(server.requests) == 1
        assert 0 in waiting()

    def test_two_dead_receivers_among_living_ones_are_no_outage(self, names):
        with receiver(204) as server:
            EndpointFactory.create(url=server.url, owner="carol")
            publish_event("carol")
            dispatch()
            Attempt.objects.update(outcome="http", status_code=500)
            Endpoint.objects.update(url="https://elsewhere.example/")
            subscribe("http://127.0.0.1:9/", "alice", "bob")
            for owner in ("alice", "bob"):
                publish_event(owner)
            dispatch()
        assert not self.is_postponing()
        since = timezone.now() - timedelta(minutes=1)
        assert stats.has_arrived_since(since)
        # No row shows whether the connection was a reused one.
        Attempt.objects.filter(outcome="http").update(outcome="timeout")
        assert not stats.has_arrived_since(since)

    def test_an_old_lease_of_this_machine_shows_nothing(self):
        DispatcherLeaseFactory.create(
            slot=None,
            boot_id=processes.boot_id(),
            expired=True,
            ended_at=timezone.now() - timedelta(minutes=6),
            offline_since=timezone.now() - timedelta(hours=1),
        )
        lease = leases.acquire()
        assert lease is not None
        assert lease.offline_since is None


LACKS = [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL]


@pytest.fixture
def lacking(monkeypatch):
    """Return a function that makes sockets fail so many times; it keeps when they did."""

    def lack(number: int, times: float) -> list[float]:
        failed: list[float] = []
        real = resolver.guarded_socket

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
            assert dispatch() == 1
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
        dispatch(stop=lambda: len(failed) >= 4)  # each attempt asks twice
        assert (only_delivery().status, only_delivery().attempts) == (0, 0)
        assert failed[2] - failed[1] > 0.5

    def test_a_lack_of_descriptors_never_counts_against_the_receiver(
        self, lacking, monkeypatch
    ):
        monkeypatch.setattr(results, "MAX_LOCAL_FAILURES", 0)
        lacking(errno.EMFILE, float("inf"))
        EndpointFactory.create()
        publish_event()
        assert dispatch(run_s=0.5) == 0
        assert (only_delivery().status, only_delivery().attempts) == (0, 0)
        assert Endpoint.objects.get().consecutive_failures == 0

    def test_an_address_that_can_never_be_used_is_a_failure_in_the_end(
        self, lacking, monkeypatch, short_pause
    ):
        monkeypatch.setattr(results, "MAX_LOCAL_FAILURES", 1)
        lacking(errno.EADDRNOTAVAIL, float("inf"))
        EndpointFactory.create()
        publish_event()
        assert dispatch() == 1
        assert only_delivery().last_error == "this machine has no address or port left"
        assert Attempt.objects.get().outcome == "connect"
