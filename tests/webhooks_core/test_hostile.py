"""Receivers that do their worst: what we make of each, and what it costs us."""

from __future__ import annotations

import gzip
import resource
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.receiver import receiver
from tests.webhooks_core.making import drain, endpoint, event
from webhooks_core.addresses import Reach
from webhooks_core.dispatch.sender import Sender
from webhooks_core.models import Attempt, Delivery, Endpoint, Outcome
from webhooks_core.transport import READ_AT_MOST, Answer, Request

TIMEOUT_S = 0.5
PATIENCE_S = 20.0  # where an answer comes: a busy machine may be slow to hear it
Behaviour = Callable[[socket.socket, "Hostile"], None]


@dataclass
class Hostile:
    """A server that answers each connection with a behaviour, until it is told to stop."""

    behave: Behaviour
    tls: ssl.SSLContext | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    accepted: int = 0
    sent: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/hook"

    @contextmanager
    def running(self) -> Iterator[Hostile]:
        threads: list[threading.Thread] = []
        with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
            self.port = server.getsockname()[1]
            server.settimeout(0.02)
            accepting = threading.Thread(target=self._accept, args=(server, threads))
            accepting.start()
            try:
                yield self
            finally:
                self.stopped.set()
                accepting.join()
                for thread in threads:
                    thread.join()

    def _accept(self, server: socket.socket, threads: list[threading.Thread]) -> None:
        while not self.stopped.is_set():
            with suppress(TimeoutError):
                connection, _ = server.accept()
                self.accepted += 1
                thread = threading.Thread(target=self._serve, args=(connection,))
                thread.start()
                threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with suppress(OSError), connection:
            if self.tls:
                with self.tls.wrap_socket(connection, server_side=True) as secured:
                    self.behave(secured, self)
            else:
                self.behave(connection, self)

    def pour(self, connection: socket.socket, data: bytes, *, pause: float = 0) -> None:
        """Send the same again and again, until the other side or the test has had enough."""
        while not self.stopped.is_set():
            self.sent += connection.send(data)
            if pause:
                time.sleep(pause)


def receive(connection: socket.socket) -> bytes:
    if data := connection.recv(65536):
        return data
    raise ConnectionError("closed by the client")


def read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += receive(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += receive(connection)


def reset(connection: socket.socket) -> None:
    """Close with RST in place of FIN."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answering(*parts: bytes, then: str = "close") -> Behaviour:
    """Read the request, send bytes, and then close, reset, drip or pour for ever."""

    def behave(connection: socket.socket, server: Hostile) -> None:
        read_request(connection)
        for part in parts[:-1] if then in {"drip", "pour"} else parts:
            connection.sendall(part)
        if then == "drip":
            server.pour(connection, parts[-1], pause=0.03)
        elif then == "pour":
            server.pour(connection, parts[-1])
        elif then == "reset":
            time.sleep(0.05)
            reset(connection)

    return behave


def resets_at_once(connection: socket.socket, _: Hostile) -> None:
    reset(connection)


def resets_while_it_reads(connection: socket.socket, _: Hostile) -> None:
    receive(connection)
    reset(connection)


def closes_at_once(connection: socket.socket, _: Hostile) -> None:
    connection.close()


def says_nothing(connection: socket.socket, server: Hostile) -> None:
    read_request(connection)
    server.stopped.wait(10)


def never_reads(connection: socket.socket, server: Hostile) -> None:
    server.stopped.wait(10)


def answers_unread(connection: socket.socket, server: Hostile) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    server.stopped.wait(0.2)


def post(url: str, *, body: bytes = b"{}", loopback: bool = True, **fields) -> Answer:
    """Make one attempt as the drain makes it."""
    request = Request(
        key=1,
        lane=1,
        limit=1,
        url=url,
        body=body,
        sign=lambda _: {"Content-Type": "application/json"},
        timeout_s=fields.get("timeout_s", PATIENCE_S),
        reach=Reach(loopback=loopback),
    )
    with Sender() as sender:
        return send(sender, request)


def send(sender: Sender, request: Request) -> Answer:
    sender.submit([request])
    for _ in range(3000):
        if answers := sender.collect(wait_s=0.02):
            return answers[0]
    raise AssertionError("no answer")


OK = b"HTTP/1.1 200 OK\r\n"
NOT_HTTP = (Outcome.HTTP, None, "the answer was not valid HTTP")
CLOSED = (Outcome.CONNECT, None, "the connection was closed without an answer")
LATE = (Outcome.TIMEOUT, None, "no answer within 0.5 s")
FINE = (Outcome.OK, 200, "")

CASES: dict[str, tuple[Behaviour, tuple[Outcome, int | None, str]]] = {
    "says nothing": (says_nothing, LATE),
    "never reads": (never_reads, LATE),
    "drips its status line": (answering(b"HTTP/1.1 200 ", b"O", then="drip"), LATE),
    "drips its headers": (answering(OK, b"X: ", b"a", then="drip"), LATE),
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
    "pours headers": (answering(OK, b"X-A: b\r\n" * 500, then="pour"), NOT_HTTP),
    "pours one header": (answering(OK, b"X-A: ", b"b" * 4096, then="pour"), NOT_HTTP),
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
    "resets within its headers": (answering(OK, b"X-A: ", then="reset"), CLOSED),
    "closes within its headers": (answering(OK, b"X-A: "), CLOSED),
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
        NOT_HTTP,
    ),
    "has two lengths": (
        answering(OK, b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
        NOT_HTTP,
    ),
    "has NUL in a header": (answering(OK, b"X-A: a\0b\r\n\r\n"), NOT_HTTP),
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


@pytest.mark.parametrize("case", CASES)
def test_a_receiver_that(case, names):
    behave, expected = CASES[case]
    names["hook.example"] = [["127.0.0.1"]]
    body = b"{}" if case != "resets while it reads" else b"x" * 1_000_000
    timeout_s = TIMEOUT_S if expected == LATE else PATIENCE_S
    with Hostile(behave).running() as it:
        url = it.url.replace("127.0.0.1", "hook.example")
        answer = post(url, body=body, timeout_s=timeout_s)
        assert (answer.outcome, answer.code, answer.error) == expected
    assert len(answer.body) <= 4096
    assert "127.0.0.1" not in answer.error
    assert it.accepted == 1


HANGING = [case for case, (_, expected) in CASES.items() if expected == LATE]
POURING = [case for case in CASES if "pours" in case or "drips its body" in case]


@pytest.mark.usefixtures("plain", "transactional_db")
def test_no_shift_outlives_its_deadline_by_more_than_a_second(use_profile):
    """The best of some runs: a busy machine is late by itself."""
    use_profile(timeout_s=TIMEOUT_S, disable_after=None)
    shift_s, late = 0.5, []
    with all_running(Hostile(CASES[it][0]) for it in HANGING + POURING) as servers:
        for it in servers:
            endpoint(it.url)
        for _ in range(5):
            event()
            began = time.monotonic()
            attempts = drain(shift_s=shift_s)
            late.append(time.monotonic() - began - shift_s - TIMEOUT_S)
            assert attempts
            if late[-1] < 1:
                break
    assert min(late) < 1


@pytest.mark.parametrize("case", [*POURING, "continues for ever", "is a gzip bomb"])
def test_memory_stays_flat_while_a_receiver(case):
    behave = GZIP_BOMB if case == "is a gzip bomb" else CASES[case][0]
    timeout_s = TIMEOUT_S if case in HANGING else PATIENCE_S
    with Hostile(behave).running() as it:
        post(it.url, timeout_s=timeout_s)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(3):
            post(it.url, timeout_s=timeout_s)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) / 1024 < 64  # MiB; each poured as much as it could


def test_no_more_than_the_start_of_an_answer_is_read():
    behave, _ = CASES["pours a body of any length"]
    with Hostile(behave).running() as it:
        answer = post(it.url)
        it.stopped.wait(0.3)
    assert answer.body == b"a" * 4096
    # What lies in the buffers of both kernels and of the reader, not a gibibyte.
    assert READ_AT_MOST <= it.sent < 32 * 1024 * 1024


BOMB = gzip.compress(bytes(128 * 1024 * 1024), compresslevel=1)
GZIP_BOMB = answering(
    OK, b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB), BOMB
)


def test_a_gzip_bomb_is_kept_packed():
    with Hostile(GZIP_BOMB).running() as it:
        answer = post(it.url)
    assert answer.outcome == Outcome.OK
    assert answer.body == BOMB[:4096]


@pytest.mark.spec("recording", "Redirects are not followed")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("to_metadata", [True, False])
def test_a_redirect_is_an_answer_like_any_other(code, to_metadata):
    with receiver(204) as elsewhere, receiver(code) as it:
        it.headers["Location"] = (
            "http://169.254.169.254/latest/meta-data/" if to_metadata else elsewhere.url
        )
        answer = post(it.url)
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

    def request(key: int, url: str) -> Request:
        return Request(
            key, 1, 1, url, b"{}", lambda _: {}, PATIENCE_S, Reach(loopback=True)
        )

    with Hostile(behave).running() as it, Sender() as sender:
        outcomes = [send(sender, request(n, it.url)).outcome for n in range(4)]
    assert outcomes == [Outcome.OK] * 4
    # The second try of a request closes its connection, so that it cannot happen twice.
    assert it.accepted > 1


# ── TLS ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def authority(monkeypatch, tmp_path: Path) -> trustme.CA:
    """An authority that this process trusts, as an operator's SSL_CERT_FILE makes it."""
    ca = trustme.CA()
    path = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    fresh: Any = aiohttp.connector._make_ssl_context(verified=True)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", fresh)
    return ca


def server_side(issued: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    return context


FINE_ANSWER = answering(OK, b"Content-Length: 0\r\n\r\n")


def test_a_receiver_with_a_good_certificate_is_delivered_to(authority):
    tls = server_side(authority.issue_cert("127.0.0.1"))
    with Hostile(FINE_ANSWER, tls).running() as it:
        answer = post(it.url)
    assert (answer.outcome, answer.error) == (Outcome.OK, "")


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

    with Hostile(behave, tls).running() as it:
        answer = post(it.url)
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
def test_a_handshake_that_does_not_end_well_is_told_as_what_it_was(behave, outcome):
    with Hostile(behave).running() as it:
        timeout_s = TIMEOUT_S if outcome == Outcome.TIMEOUT else PATIENCE_S
        answer = post(it.url.replace("http:", "https:"), timeout_s=timeout_s)
    assert answer.outcome == outcome
    assert "127.0.0.1" not in answer.error


def test_a_receiver_that_speaks_no_tls_is_a_tls_failure(authority):
    def behave(connection: socket.socket, server: Hostile) -> None:
        # Closing while its greeting waits unread would reset the connection under the answer.
        connection.recv(64 * 1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Hostile(behave).running() as it:
        answer = post(it.url.replace("http:", "https:"))
    assert answer.outcome == Outcome.TLS
    assert answer.error.startswith("TLS failed: ")


# ── Names and addresses ─────────────────────────────────────────────────────────────


@pytest.fixture
def names(monkeypatch) -> dict[str, list[list[str]]]:
    """Names and their answers, one after another; the last one holds."""
    known: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def resolve(host, port, *args: Any, **options: Any) -> Any:
        if host not in known:
            return real(host, port, *args, **options)
        turns = known[host]
        found = turns.pop(0) if len(turns) > 1 else turns[0]
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (it, port)) for it in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


BLOCKED = (Outcome.BLOCKED, "the host leads to an address that is not public")


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"]],
)
def test_a_name_with_an_address_that_is_not_public_is_not_called(names, addresses):
    names["rebind.example"] = [addresses]
    with receiver(204) as it:
        url = it.url.replace("127.0.0.1", "rebind.example")
        answer = post(url, loopback=False)
    assert (answer.outcome, answer.error) == BLOCKED
    assert it.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_a_literal_address_is_vetted_where_the_socket_is_made(host):
    with receiver(204) as it:
        answer = post(it.url.replace("127.0.0.1", host), loopback=False)
    assert (answer.outcome, answer.error) == BLOCKED
    assert it.requests == []


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "0"])
def test_an_address_in_disguise_is_not_called(host):
    with receiver(204) as it:
        answer = post(it.url.replace("127.0.0.1", host), loopback=False)
    assert answer.outcome == Outcome.BLOCKED
    assert it.requests == []


def test_names_whose_servers_hang_hold_up_no_other_name(monkeypatch):
    real, released = socket.getaddrinfo, threading.Event()

    def resolve(host, port, *args: Any, **options: Any) -> Any:
        if host.startswith("slow"):
            released.wait(60)
        return real("127.0.0.1", port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with receiver(204) as it, Sender() as sender:
        base = Request(
            1, 1, 9, it.url, b"{}", lambda _: {}, TIMEOUT_S, Reach(loopback=True)
        )
        slow = [
            base._replace(key=n, lane=n, url=f"http://slow{n % 20}.example/")
            for n in range(2, 62)
        ]
        quick = it.url.replace("127.0.0.1", "quick.example")
        sender.submit([*slow, base._replace(url=quick, timeout_s=PATIENCE_S)])
        outcomes: dict[int, Outcome | None] = {}
        while len(outcomes) < 61:
            outcomes |= {it.key: it.outcome for it in sender.collect(wait_s=0.1)}
        released.set()
    assert outcomes.pop(1) == Outcome.OK
    # Not TIMEOUT: nobody was there, which counts when our own network is in doubt.
    assert set(outcomes.values()) == {Outcome.CONNECT}
    assert len(outcomes) == 60


@pytest.mark.usefixtures("plain", "transactional_db")
def test_a_name_that_changes_between_check_and_use_is_not_called(names, use_profile):
    dialect = use_profile(
        url_policy=use_profile().url_policy.__class__(schemes=frozenset({"http"}))
    )
    names["rebind.example"] = [["93.184.215.14"], ["127.0.0.1"]]
    with receiver(204) as it:
        url = it.url.replace("127.0.0.1", "rebind.example")
        dialect.url_policy.check(url)  # it was public then
        endpoint(url)
        event()
        drain()
    assert it.requests == []
    assert Attempt.objects.get().outcome == Outcome.BLOCKED
    assert Delivery.objects.get().last_error == BLOCKED[1]


def test_a_name_that_does_not_exist_is_told_so(names):
    names["nowhere.example"] = [[]]
    answer = post("http://nowhere.example/")
    assert (answer.outcome, answer.error) == (
        Outcome.DNS,
        "the host name could not be resolved",
    )


def test_a_port_that_is_closed_is_told_without_the_address(free_port):
    answer = post(f"http://127.0.0.1:{free_port}/")
    assert (answer.outcome, answer.error) == (
        Outcome.CONNECT,
        "the connection was refused",
    )


# ── All of it, through the engine ───────────────────────────────────────────────────


@pytest.mark.usefixtures("plain", "transactional_db")
def test_hostile_receivers_hurt_no_other_and_their_answers_can_be_stored(use_profile):
    # Long for those that answer on a busy machine, short for those that never will.
    use_profile(timeout_s=5, disable_after=None)
    worst = [
        "says nothing",
        "drips its headers",
        "pours a body of any length",
        "pours headers",
        "speaks garbage",
        "answers in control characters",
        "resets within its headers",
        "breaks its chunks",
    ]
    with receiver(204) as sound:
        servers = [Hostile(CASES[case][0]) for case in worst]
        with all_running(servers):
            for it in servers:
                endpoint(it.url)
            good = endpoint(sound.url)
            for _ in range(3):
                event()
            drain()
    assert len(sound.requests) == 3
    good.refresh_from_db()
    assert good.consecutive_failures == 0
    late = (Outcome.TIMEOUT, None, "no answer within 5 s")
    for target, case in zip(Endpoint.objects.order_by("pk"), worst, strict=False):
        tried = Attempt.objects.filter(delivery__endpoint=target)
        expected = late if CASES[case][1] == LATE else CASES[case][1]
        assert tried.exists()
        for attempt in tried:
            assert (attempt.outcome, attempt.code, attempt.error) == expected
            assert "127.0.0.1" not in bytes(attempt.answer).decode(errors="replace")


@contextmanager
def all_running(servers: Iterable[Hostile]) -> Iterator[list[Hostile]]:
    with ExitStack() as stack:
        running = [stack.enter_context(it.running()) for it in servers]
        try:
            yield running
        finally:
            for it in running:
                it.stopped.set()
