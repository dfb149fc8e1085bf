"""TLS: whom we believe, and how a handshake that fails is told."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    OK,
    TIMEOUT_S,
    Hostile,
    answering,
    closes_at_once,
    in_turn,
    never_reads,
    post,
    read_request,
    receive,
    resets_at_once,
    resets_while_it_reads,
)
from webhooks_core.network.outcomes import Outcome


@pytest.fixture
def authority(settings, tmp_path: Path) -> trustme.CA:
    """An authority that is trusted because the operator's EXTRA_CA_FILE holds it."""
    ca = trustme.CA()
    settings.EXTRA_CA_FILE = str(tmp_path / "ca.pem")
    ca.cert_pem.write_to_path(settings.EXTRA_CA_FILE)
    return ca


def server_side(issued: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return context


FINE_ANSWER = answering(OK, b"Content-Length: 0\r\n\r\n")


def test_a_receiver_with_a_good_certificate_is_delivered_to(authority):
    tls = server_side(authority.issue_cert("127.0.0.1"))
    with Hostile(FINE_ANSWER, tls).running() as server:
        answer = post(server.url)
    assert (answer.outcome, answer.error) == (Outcome.OK, "")


def records_of_a_request(connection: socket.socket, tls: ssl.SSLContext) -> list[int]:
    """Answer a request; return the lengths of the TLS records that it came in, decrypted."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = tls.wrap_bio(incoming, outgoing, server_side=True)
    stream, records, request = connection.makefile("rb"), list[int](), b""
    is_handshake = True
    while is_handshake or len(request) < request_length(request):
        header = stream.read(5)  # type, version, length
        incoming.write(header + stream.read(int.from_bytes(header[3:])))
        with suppress(ssl.SSLWantReadError):
            if is_handshake:
                secured.do_handshake()
                is_handshake = False
            else:
                part = secured.read(2**16)
                request += part
                records.append(len(part))
        connection.sendall(outgoing.read())
    secured.write(OK + b"Content-Length: 0\r\n\r\n")
    connection.sendall(outgoing.read())
    return records


def request_length(request: bytes) -> float:
    head, end, _ = request.partition(b"\r\n\r\n")
    if not end:
        return float("inf")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])
    return len(head) + len(end) + length


@pytest.mark.parametrize("size", [0, 2, 8_000, 16_000, 16_384])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_head_and_a_small_body_come_in_as_few_records_as_hold_them(
    authority, size, version
):
    tls = server_side(authority.issue_cert("127.0.0.1"))
    tls.maximum_version = version
    records: list[list[int]] = []

    def behave(connection: socket.socket, server: Hostile) -> None:
        records.append(records_of_a_request(connection, tls))

    with Hostile(behave).running() as server:
        url = server.url.replace("http:", "https:")
        answer = post(url, body=b"x" * size)
    assert answer.outcome == Outcome.OK
    length = len(answer.request_head) + size
    lengths = [min(length - start, 16_384) for start in range(0, length, 16_384)]
    assert records == [lengths]


def answers_the_head(connection: socket.socket, server: Hostile) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    receive(connection)
    connection.sendall(OK + b"Content-Length: 0\r\n\r\n")
    server.stopped.wait(PATIENCE_S)


@pytest.mark.parametrize("is_secured", [False, True])
def test_a_connection_whose_request_was_not_read_serves_no_other(authority, is_secured):
    tls = server_side(authority.issue_cert("127.0.0.1")) if is_secured else None
    with Hostile(answers_the_head, tls).running() as server:
        results = in_turn(server.url, 2, body=bytes(16 * 1024 * 1024))
    assert [result.outcome for result in results] == [Outcome.OK] * 2
    assert server.accepted == 2


@pytest.mark.parametrize("is_secured", [False, True])
def test_a_connection_whose_large_request_was_read_serves_another(
    authority, is_secured
):
    def behave(connection: socket.socket, server: Hostile) -> None:
        while True:
            read_request(connection)
            connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    tls = server_side(authority.issue_cert("127.0.0.1")) if is_secured else None
    with Hostile(behave, tls).running() as server:
        results = in_turn(server.url, 3, body=bytes(1024 * 1024))
    assert [result.outcome for result in results] == [Outcome.OK] * 3
    assert server.accepted == 1


def self_signed(tmp_path: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "self.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
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
    reached: list[bool] = []

    def behave(connection: socket.socket, server: Hostile) -> None:
        read_request(connection)
        reached.append(True)

    with Hostile(behave, tls).running() as server:
        answer = post(server.url)
    assert answer.outcome == Outcome.TLS
    assert answer.error.startswith(text)
    assert reached == []


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
        timeout_s = TIMEOUT_S if outcome == Outcome.TIMEOUT else PATIENCE_S
        answer = post(server.url.replace("http:", "https:"), timeout_s=timeout_s)
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
