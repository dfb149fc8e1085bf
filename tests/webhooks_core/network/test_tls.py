"""TLS: whom we believe, and how a handshake that fails is told."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from tests.webhooks_core.network.hostile import (
    EMPTY,
    Hostile,
    answering,
    closes_at_once,
    in_turn,
    never_reads,
    post,
    post_in_vain,
    read_request,
    resets_at_once,
    resets_while_it_reads,
    server_side,
)
from webhooks_core.network.errors import Outcome


def answers_each(connection: socket.socket, _: Hostile) -> None:
    while True:
        read_request(connection)
        connection.sendall(EMPTY)


@pytest.mark.parametrize("is_secured", [False, True])
def test_a_connection_serves_another_request_after_a_large_one(authority, is_secured):
    tls = server_side(authority.issue_cert("127.0.0.1")) if is_secured else None
    with Hostile(answers_each, tls).running() as server:
        results = in_turn(server.url, 2, body=bytes(1024 * 1024))
    assert [result.outcome for result in results] == [Outcome.OK] * 2
    assert server.accepted == 1


def self_signed(folder: Path) -> ssl.SSLContext:
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = str(folder / "self.pem")
    ca.private_key_pem.write_to_path(path)
    ca.cert_pem.write_to_path(path, append=True)
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("wrong name", "TLS failed: "),
        ("expired", "TLS failed: certificate has expired"),
        ("unknown authority", "TLS failed: unable to get local issuer certificate"),
        ("self-signed", "TLS failed: self-signed certificate"),
    ],
)
def test_a_certificate_that_does_not_hold_is_refused(authority, tmp_path, fault, text):
    now = datetime.now(UTC)
    tls = {
        "wrong name": lambda: server_side(authority.issue_cert("wrong.example")),
        "expired": lambda: server_side(
            authority.issue_cert("127.0.0.1", not_after=now - timedelta(days=1))
        ),
        "unknown authority": lambda: server_side(trustme.CA().issue_cert("127.0.0.1")),
        "self-signed": lambda: self_signed(tmp_path),
    }[fault]()
    with Hostile(answering(EMPTY), tls).running() as server:
        answer = post(server.url)
    assert answer.outcome == Outcome.TLS
    assert answer.error.startswith(text)
    assert server.heard == 0


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (resets_at_once, Outcome.CONNECT),
        (resets_while_it_reads, Outcome.CONNECT),
        (closes_at_once, Outcome.CONNECT),
        (never_reads, Outcome.TIMEOUT),
    ],
)
def test_a_failed_handshake_is_reported_as_what_it_was(behave, outcome):
    with Hostile(behave).running() as server:
        url = server.url.replace("http:", "https:")
        is_late = outcome == Outcome.TIMEOUT
        answer = post_in_vain(url, lambda: server.heard) if is_late else post(url)
    assert answer.outcome == outcome
    assert "127.0.0.1" not in answer.error


def test_a_receiver_that_speaks_no_tls_is_a_tls_failure(authority):
    def behave(connection: socket.socket, server: Hostile) -> None:
        # Closing while its greeting waits unread would reset the connection under the answer.
        connection.recv(64 * 1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Hostile(behave).running() as server:
        answer = post(server.url.replace("http:", "https:"))
    assert answer.outcome == Outcome.TLS
    assert answer.error.startswith("TLS failed: ")
