"""Receivers that do their worst: what we make of each, and what it costs us."""

import socket
from typing import Any

import pytest

from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    CLOSED,
    CONTINUE,
    EMPTY,
    FINE,
    LATE,
    NOT_HTTP,
    OK,
    Behaviour,
    Hostile,
    answering,
    answers_unread,
    closes_at_once,
    dripping,
    in_turn,
    never_reads,
    post,
    post_in_vain,
    pouring,
    read_request,
    request_to,
    reset,
    resets_at_once,
    resets_while_it_reads,
    says_nothing,
    send,
)
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network import addresses, pool, transport
from webhooks_core.network.errors import Outcome

TEN = OK + b"Content-Length: 10\r\n\r\n"
GIBIBYTE = OK + b"Content-Length: 1073741824\r\n\r\n"
ATTEMPTS = 40
Ending = tuple[Outcome, int | None, str]
CASES: dict[Ending, dict[str, Behaviour]] = {
    LATE: {
        "says nothing": says_nothing,
        "never reads": never_reads,
        "drips its status line": dripping(b"HTTP/1.1 200 ", b"O"),
        "continues now and then for ever": dripping(b"", CONTINUE),
        "hints for ever": dripping(b"", b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n"),
    },
    FINE: {
        "drips its body": dripping(OK + b"Content-Length: 9999\r\n\r\n", b"a"),
        "pours a body of any length": pouring(GIBIBYTE, b"a" * 65536),
        "continues once": answering(CONTINUE + EMPTY),
        "resets within its body": answering(TEN + b"abc", then="reset"),
        "closes within its body": answering(TEN + b"abc"),
        "answers before it has read": answers_unread,
        "answers in control characters": answering(TEN + b"\0\x01\x1b[2J\xff\xfe\0\0"),
    },
    CLOSED: {
        "resets at once": resets_at_once,
        "resets while it reads": resets_while_it_reads,
        "closes at once": closes_at_once,
        "closes when it has read": answering(),
    },
    NOT_HTTP: {
        "pours headers": pouring(OK, b"X-A: b\r\n" * 500),
        "pours one header": pouring(OK + b"X-A: ", b"b" * 4096),
        "continues for ever": pouring(b"", CONTINUE),
        "has a broken head": answering(
            b"HTTP/1.1 503 Busy\r\nContent-Length: x\r\n\r\n"
        ),
        "speaks HTTP/0.9": answering(b"<html>hello</html>\n"),
        "speaks garbage": answering(bytes(range(256)) * 4),
        "speaks TLS": answering(b"\x15\x03\x01\x00\x02\x02\x28"),
        "has a status of four digits": answering(b"HTTP/1.1 2000 OK\r\n\r\n"),
        "breaks a head before its status": answering(
            b"HTTP/1.1 103 Hints\r\nbroken\r\n\r\n" + EMPTY
        ),
    },
    (Outcome.HTTP, 101, "HTTP 101"): {
        "switches protocols": answering(
            b"HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
    },
    (Outcome.OK, 204, ""): {
        "answers 204 with a body": answering(
            b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc"
        )
    },
    (Outcome.HTTP, 999, "HTTP 999"): {
        "answers 999": answering(b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n")
    },
}


@pytest.mark.parametrize(
    ("expected", "case"),
    [(end, case) for end, cases in CASES.items() if end != LATE for case in cases],
)
@pytest.mark.spec(
    "recording",
    "a timeout or a failure before the request is retried too",
)
def test_a_receiver_that(expected, case, names, monkeypatch):
    monkeypatch.setattr(transport, "READ_FOR_S", 0.1)
    names["hook.example"] = [["127.0.0.1"]]
    body = b"{}" if case != "resets while it reads" else b"x" * 1_000_000
    with Hostile(CASES[expected][case]).running() as server:
        url = server.url.replace("127.0.0.1", "hook.example")
        answer = post(url, body=body)
    assert (answer.outcome, answer.status_code, answer.error) == expected
    assert len(answer.body) <= 4096
    assert server.accepted == 1


@pytest.mark.parametrize("behave", CASES[LATE].values(), ids=CASES[LATE])
@pytest.mark.spec("gateway", "a delivery times out after timeout_s")
@pytest.mark.spec(
    "recording",
    "a timeout or a failure before the request is retried too",
)
def test_a_receiver_is_late_that(behave):
    with Hostile(behave).running() as server:
        answer = post_in_vain(server.url, lambda: server.heard)
    assert (answer.outcome, answer.status_code, answer.error) == LATE
    assert server.accepted == 1


def test_no_more_than_the_start_of_an_answer_is_read(monkeypatch):
    monkeypatch.setattr(transport, "READ_FOR_S", PATIENCE_S)
    with Hostile(CASES[FINE]["pours a body of any length"]).running() as server:
        answer = post(server.url)
        server.stopped.wait(0.3)
    assert answer.body == b"a" * 4096
    # What lies in the buffers of both kernels and of the reader, not a gibibyte.
    assert transport.READ_AT_MOST <= server.sent < 32 * 1024 * 1024


@pytest.mark.spec("recording", "Redirects are not followed")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_like_any_other(code):
    with receiver(204) as elsewhere, receiver(code) as server:
        server.headers["Location"] = elsewhere.url
        answer = post(server.url)
    assert (answer.outcome, answer.error) == (Outcome.HTTP, f"HTTP {code}")
    assert elsewhere.requests == []


@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_a_kept_connection_that_was_closed_silently_is_no_failure(end):
    def behave(connection: socket.socket, _: Hostile) -> None:
        read_request(connection)
        connection.sendall(EMPTY)
        read_request(connection)  # and does not answer it
        end(connection)

    with Hostile(behave).running() as server:
        results = in_turn(server.url, 4)
    assert [result.outcome for result in results] == [Outcome.OK] * 4
    assert [result.is_repeated for result in results] == [False, True, False, True]
    # The second try of a request closes its connection, so that it cannot happen twice.
    assert server.accepted > 1


@pytest.mark.parametrize("behave", [closes_at_once, resets_at_once])
@pytest.mark.parametrize("scheme", ["http:", "https:"])
def test_no_socket_is_closed_twice_however_soon_a_receiver_ends_it(
    monkeypatch, behave, scheme
):
    opened: list[socket.socket] = []
    make = addresses.guarded_socket

    def noted(*args: Any) -> socket.socket:
        opened.append(make(*args))
        return opened[-1]

    monkeypatch.setattr(pool, "guarded_socket", noted)
    with Hostile(behave).running() as server, Sender() as sender:
        for _ in range(ATTEMPTS):
            send(sender, request_to(server.url.replace("http:", scheme)))
    assert [each.fileno() for each in opened] == [-1] * ATTEMPTS
