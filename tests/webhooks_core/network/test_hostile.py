"""Receivers that do their worst: what we make of each, and what it costs us."""

from __future__ import annotations

import gzip
import resource
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import pytest

from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.engine import dispatch
from tests.webhooks_core.factories import EndpointFactory, publish_event, publish_events
from tests.webhooks_core.network.hostile import (
    CLOSED,
    FINE,
    LATE,
    NOT_HTTP,
    OK,
    TIMEOUT_S,
    Behaviour,
    Hostile,
    answering,
    answers_unread,
    closes_at_once,
    never_reads,
    pass_time,
    post,
    post_in_vain,
    read_request,
    request_to,
    reset,
    resets_at_once,
    resets_while_it_reads,
    says_nothing,
    send,
)
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Endpoint
from webhooks_core.network import pool, resolver
from webhooks_core.network.addresses import AllowedNetworks
from webhooks_core.network.connection import READ_AT_MOST
from webhooks_core.network.outcomes import Outcome
from webhooks_core.network.transport import OutgoingRequest

CASES: dict[str, tuple[Behaviour, tuple[Outcome, int | None, str]]] = {
    "says nothing": (says_nothing, LATE),
    "never reads": (never_reads, LATE),
    "drips its status line": (answering(b"HTTP/1.1 200 ", b"O", then="drip"), LATE),
    "drips its headers": (answering(OK, b"X: ", b"a", then="drip"), FINE),
    "drips its body": (
        answering(OK, b"Content-Length: 9999\r\n\r\n", b"a", then="drip"),
        FINE,
    ),
    "pours a body of any length": (
        answering(OK, b"Content-Length: 1073741824\r\n\r\n", b"a" * 65536, then="pour"),
        FINE,
    ),
    "pours chunks": (
        answering(
            OK,
            b"Transfer-Encoding: chunked\r\n\r\n",
            b"8000\r\n" + b"a" * 32768 + b"\r\n",
            then="pour",
        ),
        FINE,
    ),
    "pours a body without a length": (
        answering(OK, b"\r\n", b"a" * 65536, then="pour"),
        FINE,
    ),
    "pours headers": (answering(OK, b"X-A: b\r\n" * 500, then="pour"), FINE),
    "pours one header": (answering(OK, b"X-A: ", b"b" * 4096, then="pour"), FINE),
    "pours its status line": (
        answering(b"HTTP/1.1 200 ", b"O" * 4096, then="pour"),
        NOT_HTTP,
    ),
    "continues for ever": (
        answering(b"HTTP/1.1 100 Continue\r\n\r\n", then="pour"),
        LATE,
    ),
    "continues now and then for ever": (
        answering(b"HTTP/1.1 100 Continue\r\n\r\n", then="drip"),
        LATE,
    ),
    "hints for ever": (
        answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", then="drip"),
        LATE,
    ),
    "continues once": (
        answering(b"HTTP/1.1 100 Continue\r\n\r\n", OK + b"Content-Length: 0\r\n\r\n"),
        FINE,
    ),
    "resets at once": (resets_at_once, CLOSED),
    "resets while it reads": (resets_while_it_reads, CLOSED),
    "closes at once": (closes_at_once, CLOSED),
    "resets when it has read": (answering(then="reset"), CLOSED),
    "closes when it has read": (answering(), CLOSED),
    "resets within its status line": (answering(b"HTTP/1.1 20", then="reset"), CLOSED),
    "resets within its headers": (answering(OK, b"X-A: ", then="reset"), FINE),
    "closes within its headers": (answering(OK, b"X-A: "), FINE),
    "resets within its body": (
        answering(OK, b"Content-Length: 10\r\n\r\nabc", then="reset"),
        FINE,
    ),
    "closes within its body": (
        answering(OK, b"Content-Length: 10\r\n\r\nabc"),
        FINE,
    ),
    "breaks its chunks": (
        answering(OK, b"Transfer-Encoding: chunked\r\n\r\nZZ\r\nabc\r\n"),
        FINE,
    ),
    "breaks its chunks later": (
        answering(OK, b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"ZZ\r\n"),
        FINE,
    ),
    "speaks HTTP/0.9": (answering(b"<html>hello</html>\n"), NOT_HTTP),
    "speaks garbage": (answering(bytes(range(256)) * 4), NOT_HTTP),
    "speaks SSH": (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), NOT_HTTP),
    "speaks TLS": (answering(b"\x15\x03\x01\x00\x02\x02\x28"), NOT_HTTP),
    "has a status of four digits": (answering(b"HTTP/1.1 2000 OK\r\n\r\n"), NOT_HTTP),
    "has a status of letters": (answering(b"HTTP/1.1 OK 200\r\n\r\n"), NOT_HTTP),
    "has a negative length": (
        answering(OK, b"Content-Length: -1\r\n\r\n"),
        FINE,
    ),
    "has two lengths": (
        answering(OK, b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        FINE,
    ),
    "has NUL in a header": (answering(OK, b"X-A: a\0b\r\n\r\n"), FINE),
    "has a broken head after another status": (
        answering(b"HTTP/1.1 503 Busy\r\nContent-Length: x\r\n\r\n"),
        (Outcome.HTTP, 503, "HTTP 503"),
    ),
    "has a broken head before its status": (
        answering(b"HTTP/1.1 103 Hints\r\nbroken\r\n\r\n" + OK + b"\r\n"),
        NOT_HTTP,
    ),
    "switches protocols": (
        answering(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\n\r\n"
        ),
        (Outcome.HTTP, 101, "HTTP 101"),
    ),
    "answers 204 with a body": (
        answering(b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc"),
        (Outcome.OK, 204, ""),
    ),
    "answers 999": (
        answering(b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"),
        (Outcome.HTTP, 999, "HTTP 999"),
    ),
    "answers with a header of 20 kB": (
        answering(OK, b"X-A: " + b"b" * 20_000 + b"\r\nContent-Length: 0\r\n\r\n"),
        FINE,
    ),
    "answers with 200 header lines": (
        answering(OK, b"Set-Cookie: a=b\r\n" * 199, b"Content-Length: 0\r\n\r\n"),
        FINE,
    ),
    "answers with a header of 1 MB": (
        answering(OK, b"X-A: " + b"b" * 1_000_000 + b"\r\n\r\n"),
        FINE,
    ),
    "answers with 1,000 header lines": (
        answering(OK, b"X-A: b\r\n" * 1000, b"\r\n"),
        FINE,
    ),
    "answers before it has read": (answers_unread, FINE),
    "answers in control characters": (
        answering(OK, b"X-A: \xff\xfe\r\nContent-Length: 6\r\n\r\n\0\x01\x1b[2J"),
        FINE,
    ),
    "refuses with a cookie": (
        answering(
            b"HTTP/1.1 400 Bad\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno"
        ),
        (Outcome.HTTP, 400, "HTTP 400"),
    ),
}


HANGING = [case for case, (_, expected) in CASES.items() if expected == LATE]
POURING = [case for case in CASES if "pours" in case]


@pytest.mark.parametrize("case", [case for case in CASES if case not in HANGING])
@pytest.mark.spec(
    "recording",
    "a timeout or a failure before the request is retried too",
)
def test_a_receiver_that(case, names):
    behave, expected = CASES[case]
    names["hook.example"] = [["127.0.0.1"]]
    body = b"{}" if case != "resets while it reads" else b"x" * 1_000_000
    with Hostile(behave).running() as server:
        url = server.url.replace("127.0.0.1", "hook.example")
        answer = post(url, body=body)
    assert (answer.outcome, answer.status_code, answer.error) == expected
    assert len(answer.body) <= 4096
    assert "127.0.0.1" not in answer.error
    assert server.accepted == 1


@pytest.mark.parametrize("case", HANGING)
@pytest.mark.spec(
    "recording",
    "a timeout or a failure before the request is retried too",
)
def test_a_receiver_is_late_that(case):
    with Hostile(CASES[case][0]).running() as server:
        answer = post_in_vain(server)
    assert (answer.outcome, answer.status_code, answer.error) == LATE
    assert server.accepted == 1


@pytest.mark.usefixtures("plain", "transactional_db")
@pytest.mark.spec("gateway", "a delivery times out after timeout_s")
def test_a_dispatcher_ends_while_receivers_hang_drip_and_pour(use_profile):
    use_profile(timeout_s=TIMEOUT_S, disable_after=None)
    names = [*HANGING, *POURING, "drips its body"]
    with all_running(Hostile(CASES[name][0]) for name in names) as servers:
        for server in servers:
            EndpointFactory.create(url=server.url)
        publish_event()
        assert dispatch(stop=lambda: all(it.heard for it in servers)) == len(servers)


@pytest.mark.parametrize("case", [*POURING, "continues for ever", "is a gzip bomb"])
def test_memory_stays_flat_while_a_receiver(case):
    behave = gzip_bomb() if case == "is a gzip bomb" else CASES[case][0]
    timeout_s = 0.5 if case in HANGING else PATIENCE_S
    with Hostile(behave).running() as server:
        post(server.url, timeout_s=timeout_s)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            post(server.url, timeout_s=timeout_s)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) / 1024 < 64  # MiB; each poured as much as it could


def test_no_more_than_the_start_of_an_answer_is_read():
    behave, _ = CASES["pours a body of any length"]
    with Hostile(behave).running() as server:
        answer = post(server.url)
        server.stopped.wait(0.3)
    assert answer.body == b"a" * 4096
    # What lies in the buffers of both kernels and of the reader, not a gibibyte.
    assert READ_AT_MOST <= server.sent < 32 * 1024 * 1024


@cache
def bomb() -> bytes:
    return gzip.compress(bytes(128 * 1024 * 1024), compresslevel=1)


def gzip_bomb() -> Behaviour:
    length = b"Content-Length: %d\r\n\r\n" % len(bomb())
    return answering(OK, b"Content-Encoding: gzip\r\n" + length, bomb())


def test_a_gzip_bomb_is_not_decompressed():
    with Hostile(gzip_bomb()).running() as server:
        answer = post(server.url)
    assert answer.outcome == Outcome.OK
    assert answer.body == bomb()[:4096]


@pytest.mark.spec("recording", "Redirects are not followed")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("to_metadata", [True, False])
def test_a_redirect_is_an_answer_like_any_other(code, to_metadata):
    with receiver(204) as elsewhere, receiver(code) as server:
        server.headers["Location"] = (
            "http://169.254.169.254/latest/meta-data/" if to_metadata else elsewhere.url
        )
        answer = post(server.url)
    assert (answer.outcome, answer.error) == (Outcome.HTTP, f"HTTP {code}")
    assert elsewhere.requests == []


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_kept_connection_that_was_closed_silently_is_no_failure(how):
    def behave(connection: socket.socket, server: Hostile) -> None:
        read_request(connection)
        connection.sendall(OK + b"Content-Length: 0\r\n\r\n")
        read_request(connection)  # and does not answer it
        if how == "reset":
            reset(connection)

    def request(key: int, url: str) -> OutgoingRequest:
        return OutgoingRequest(
            key,
            1,
            1,
            url,
            b"{}",
            lambda _: {},
            PATIENCE_S,
            AllowedNetworks(loopback=True),
        )

    with Hostile(behave).running() as server, Sender() as sender:
        results = [send(sender, request(n, server.url)) for n in range(4)]
    assert [result.outcome for result in results] == [Outcome.OK] * 4
    assert [result.is_repeated for result in results] == [False, True, False, True]
    # The second try of a request closes its connection, so that it cannot happen twice.
    assert server.accepted > 1


@pytest.mark.usefixtures("plain", "transactional_db")
def test_hostile_receivers_hurt_no_other_and_their_answers_can_be_stored(
    monkeypatch, use_profile
):
    senders: list[Sender] = []
    enter = Sender.__enter__

    def note(sender: Sender) -> Sender:
        senders.append(sender)
        return enter(sender)

    monkeypatch.setattr(Sender, "__enter__", note)

    def end_what_hangs() -> bool:
        late = Attempt.objects.filter(outcome=Outcome.TIMEOUT).count()
        if silent.heard > late and Attempt.objects.count() == late + 3 * len(worst):
            pass_time(senders[0])
        return False

    use_profile(timeout_s=PATIENCE_S, disable_after=None)
    worst = [
        "says nothing",
        "pours a body of any length",
        "pours headers",
        "speaks garbage",
        "answers in control characters",
        "resets within its headers",
        "breaks its chunks",
    ]
    with receiver(204) as sound:
        silent, *_ = servers = [Hostile(CASES[case][0]) for case in worst]
        with all_running(servers):
            for server in servers:
                EndpointFactory.create(url=server.url)
            good = EndpointFactory.create(url=sound.url)
            publish_events(3)
            dispatch(stop=end_what_hangs)
    assert len(sound.requests) == 3
    good.refresh_from_db()
    assert good.consecutive_failures == 0
    for target, case in zip(Endpoint.objects.order_by("pk"), worst, strict=False):
        tried = Attempt.objects.filter(delivery__endpoint=target)
        assert tried.count() == 3
        for attempt in tried:
            outcome = (attempt.outcome, attempt.status_code, attempt.error)
            assert (case, outcome) == (case, CASES[case][1])
            assert "127.0.0.1" not in bytes(attempt.response_body).decode(
                errors="replace"
            )


@contextmanager
def all_running(servers: Iterable[Hostile]) -> Iterator[list[Hostile]]:
    with ExitStack() as stack:
        running = [stack.enter_context(server.running()) for server in servers]
        try:
            yield running
        finally:
            for server in running:
                server.stopped.set()


@pytest.mark.parametrize("behave", [closes_at_once, resets_at_once])
@pytest.mark.parametrize("scheme", ["http:", "https:"])
def test_no_socket_is_closed_twice_however_soon_a_receiver_ends_it(
    monkeypatch, behave, scheme
):
    opened: list[socket.socket] = []
    make = resolver.guarded_socket

    def noted(*args: Any) -> socket.socket:
        opened.append(make(*args))
        return opened[-1]

    monkeypatch.setattr(pool, "guarded_socket", noted)
    with Hostile(behave).running() as server, Sender() as sender:
        for _ in range(100):
            send(sender, request_to(server.url.replace("http:", scheme)))
    assert [each.fileno() for each in opened] == [-1] * 100
