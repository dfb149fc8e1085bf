"""What is sent, on which connection, and what an attempt reports of it."""

import errno
import gc
import re
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

import pytest

from tests.receiver import receiver
from tests.running import PATIENCE_S
from tests.webhooks_core.network.hostile import (
    EMPTY,
    Hostile,
    answering,
    closes_at_once,
    in_turn,
    post,
    read_request,
    request_to,
    send,
)
from webhooks_core.dispatch.sender import Sender
from webhooks_core.network import addresses, pool
from webhooks_core.network.connection import Origin, head_of, target_of
from webhooks_core.network.errors import MalformedUrlError, Outcome
from webhooks_core.network.transport import OutgoingRequest
from webhooks_core.network.url_policy import UrlPolicy


def signed(url: str, headers: Mapping[str, str]) -> OutgoingRequest:
    return request_to(url)._replace(sign=lambda _: headers)


@pytest.mark.parametrize(
    ("url", "origin", "start"),
    [
        ("http://a.example", ("a.example", 80, False), "POST / HTTP/1.1\r\nHost: a.e"),
        ("https://A.Example:443/x", ("a.example", 443, True), "Host: a.example\r\n"),
        ("https://a.example:8443/x?y=%20", ("a.example", 8443, True), "POST /x?y=%20 "),
        ("https://a.example:8443/", ("a.example", 8443, True), "a.example:8443\r\n"),
        ("https://a.example./", ("a.example.", 443, True), "Host: a.example\r\n"),
        ("http://[::1]:81/", ("::1", 81, False), "Host: [::1]:81\r\n"),
        ("http://xn--bcher-kva.a/", ("xn--bcher-kva.a", 80, False), "xn--bcher-kva.a"),
        ("https://bücher.a/ü", ("xn--bcher-kva.a", 443, True), "POST /%C3%BC HTTP"),
        ("https://a.example?", ("a.example", 443, True), "POST /? HTTP"),
        ("https://a.example?x", ("a.example", 443, True), "POST /?x HTTP"),
        ("https://a.example/a b", ("a.example", 443, True), "POST /a%20b HTTP"),
        ("https://a.example/#part", ("a.example", 443, True), "POST / HTTP"),
        ("https://user:pw@a.example/", ("a.example", 443, True), "Host: a.example\r\n"),
    ],
)
def test_a_url_is_read_as_the_policy_reads_it(url, origin, start):
    target = target_of(url)
    assert target.origin == Origin(*origin)
    assert start in target.start
    assert target.start.count("\r\n") == 2


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/x",
        "https://",
        "ftp://a.example/",
        "http://[::1",
        "http://[::1]@",
        "http://a:b:c/",
    ],
)
def test_a_url_without_a_receiver_is_refused(url):
    with pytest.raises(MalformedUrlError):
        target_of(url)
    result = post(url)
    assert (result.outcome, result.error) == (Outcome.BLOCKED, "the url is malformed")


@pytest.mark.parametrize(
    "text", ["\r\nX: y", "\n", "\r", "\0", "\t", " ", "\x85", "\u2028"]
)
@pytest.mark.parametrize("form", ["http://a{}b/", "http://a/b{}c", "http://a/?b{}c"])
def test_a_url_that_would_leave_its_line_is_quoted_or_refused(text, form):
    with suppress(MalformedUrlError):
        start = target_of(form.format(text)).start
        assert re.fullmatch(r"POST [!-~]+ HTTP/1.1\r\nHost: [!-~]+\r\n", start)


@pytest.mark.parametrize(
    "target",
    [
        "/a%2Fb%3A%40%3B%2f%7E%41?c=%2F%3A%40%3B%26%3D%2B%23&d=+%20",
        *("/?", "/a?", "/a??b?", "/%zz%?%", "/a/./b/../c//d/"),
        "/a;b=c:@!$&'()*+,=~[]{}|^`\"<>",
        "/?X-Amz-Credential=a%2F20261125%2Feu&sig=a%2Bb%3D%3D&sp=%2Ftriggers%2Fmanual",
    ],
)
def test_the_request_line_carries_the_accepted_bytes(target):
    with Hostile(answering(EMPTY)).running() as server:
        url = server.url.removesuffix("/hook") + target
        UrlPolicy(local_schemes=frozenset({"http"})).check_syntax(url)
        result = post(url)
    assert result.outcome == Outcome.OK
    assert result.request_head.startswith(f"POST {target} HTTP/1.1\r\n".encode())


@pytest.mark.parametrize("break_", ["\r", "\n", "\r\n", "\0", "\r\nX: y", "\n\r"])
def test_a_header_that_would_leave_its_line_is_never_sent(break_):
    target, text = target_of("http://a/"), f"a{break_}b"
    for headers in ({text: "c"}, {"X-A": "b", "X-C": text}):
        with pytest.raises(ValueError, match="a header holds"):
            head_of(target, headers, {}, 3)


def test_a_header_replaces_the_default_of_its_name():
    defaults = {"User-Agent": "Signpost", "Accept": "*/*"}
    head = head_of(target_of("http://a/"), {"accept": "x", "B": "ü"}, defaults, 3)
    lines = ["POST / HTTP/1.1", "Host: a", "User-Agent: Signpost", "accept: x", "B: ü"]
    assert head.decode().split("\r\n") == [*lines, "Content-Length: 3", "", ""]


def test_a_request_is_complete_and_asks_for_no_compression():
    with receiver(204) as server:
        post(server.url, body=b'{"a":1}')
    [request] = server.requests
    assert request.body == b'{"a":1}'
    names = "Host User-Agent Accept Accept-Encoding Content-Type Content-Length"
    assert request.headers.keys() == set(names.split())
    assert request.headers["Accept-Encoding"] == "identity"


def test_an_attempt_reports_when_it_was_connected_and_answered():
    with receiver(204) as server:
        [result] = in_turn(server.url, 1)
    connected, secured, first_byte = result.timings
    assert secured is None
    assert connected is not None
    assert first_byte is not None
    assert 0 <= connected <= first_byte <= result.duration_ms


def test_of_many_headers_of_a_response_the_first_are_kept():
    many = 9 * (b"X: " + b"a" * 1000 + b"\r\n")
    head = b"HTTP/1.1 200 OK\r\n" + many + b"Content-Length: 0\r\n\r\n"
    with Hostile(answering(head)).running() as server:
        assert len(post(server.url).response_headers) == 4


def test_a_time_out_of_the_system_is_not_taken_for_ours(monkeypatch):
    def time_out(*_: object) -> None:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    monkeypatch.setattr(pool, "guarded_socket", time_out)
    result = post("http://127.0.0.1:9/")
    assert (result.outcome, result.error) == (Outcome.CONNECT, "the connection failed")


@pytest.mark.parametrize(
    ("behave", "outcome"),
    [
        (closes_at_once, Outcome.CONNECT),
        (answering(b"not HTTP\r\n\r\n"), Outcome.HTTP),
        (answering(b"HTTP/1.1 500 x\r\n\r\n"), Outcome.HTTP),
    ],
    ids=["closed", "not HTTP", "refused"],
)
def test_a_failed_attempt_leaves_no_body_to_the_garbage_collector(behave, outcome):
    body = bytes(50_000)
    before = sys.getrefcount(body)
    gc.disable()
    try:
        with Hostile(behave).running() as hostile:
            results = in_turn(hostile.url, 20, body=body)
        left = sys.getrefcount(body) - before
    finally:
        gc.enable()
    assert {result.outcome for result in results} == {outcome}
    assert left <= 2


def test_the_next_address_of_a_name_is_tried_where_nothing_listens(names):
    names["two.example"] = [["127.0.0.2", "127.0.0.1"]]
    with Hostile(answering(EMPTY)).running() as server:
        result = post(server.url.replace("127.0.0.1", "two.example"))
    assert (result.outcome, server.accepted) == (Outcome.OK, 1)


def test_neither_a_connection_nor_a_name_is_kept_for_longer_than_its_time(
    monkeypatch, names
):
    monkeypatch.setattr(pool, "KEEP_ALIVE_S", 0.05)
    monkeypatch.setattr(addresses, "REMEMBER_FOR_S", 0.01)
    names["moves.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    closed = threading.Event()

    def behave(connection: socket.socket, _: Hostile) -> None:
        read_request(connection)
        connection.sendall(EMPTY)
        if connection.recv(1) == b"":
            closed.set()

    with Hostile(behave).running() as server, Sender() as sender:
        request = request_to(server.url.replace("127.0.0.1", "moves.example"))
        assert send(sender, request).outcome == Outcome.OK
        assert closed.wait(PATIENCE_S)
        assert send(sender, request).outcome == Outcome.BLOCKED
