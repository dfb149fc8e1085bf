"""What a connection makes of the bytes that it gets, without a network between."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhooks_core.network.hostile import OK
from webhooks_core.network.connection import (
    HIGH_BYTES,
    MAX_HEAD_BYTES,
    PART_BYTES,
    Connection,
)
from webhooks_core.network.errors import NotHttpError


class Wire(asyncio.Transport):
    """Keeps what is written; whether it was aborted."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = self.paused = False
        self.written: list[int] = []
        self.unsent = 0

    def write(self, data: Any) -> None:
        self.written.append(len(data))

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def is_closing(self) -> bool:
        return self.aborted

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Reading(NamedTuple):
    """What is made of a response; a `status_code` of None is a failure."""

    status_code: int | None
    body: bytes
    retry_after: bytes
    failure: type[BaseException] | None
    is_reusable: bool


def connected(loop: asyncio.AbstractEventLoop) -> tuple[Connection, Wire]:
    connection, wire = Connection(loop, "127.0.0.1"), Wire()
    connection.connection_made(wire)
    return connection, wire


async def exchanged(connection: Connection, chunks: Sequence[bytes]) -> Reading:
    """Exchange a request for chunks and, unless they are complete, the connection's end."""
    head = asyncio.ensure_future(connection.exchange(b"", b""))
    await asyncio.sleep(0)
    for chunk in chunks:
        connection.data_received(chunk)
    is_open = not connection.is_closed
    if not connection._is_over:
        connection.connection_lost(None)
    body, failure = b"", None
    try:
        await head
        while part := await connection.read():
            body += part
    except (OSError, NotHttpError) as error:
        failure = type(error)
    pauses = [
        value for name, value in connection.headers if name.lower() == b"retry-after"
    ]
    pause = pauses[0].strip() if pauses and connection.status_code else b""
    is_reusable = is_open and connection.is_reusable
    return Reading(connection.status_code, body, pause, failure, is_reusable)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def read(loop: asyncio.AbstractEventLoop, *chunks: bytes) -> Reading:
    return loop.run_until_complete(exchanged(connected(loop)[0], chunks))


RESPONSES = [
    OK + b"Content-Length: 5\r\nRetry-After: 7\r\n\r\nhello",
    OK + b"Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.0 503 Busy\r\nConnection: close\r\nRetry-After:  120 \r\n\r\nbusy",
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nabc",
    OK + b"X-Folded: a\r\n b\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n",
]


@pytest.mark.parametrize("response", RESPONSES)
def test_a_response_means_the_same_however_it_is_cut(loop, response):
    whole = read(loop, response)
    assert whole.status_code
    for at in range(1, len(response)):
        assert read(loop, response[:at], response[at:])[:3] == whole[:3]


HEADER_NAMES = st.sampled_from(["X-A", "Server", "Retry-After", "set-cookie"])
HEADER_VALUES = st.text(
    st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20
)


@st.composite
def well_formed(draw: st.DrawFn) -> bytes:
    """A response as a correct server sends it, with some 1xx before it."""
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    status = draw(
        st.integers(200, 599).filter(lambda code: code not in {204, 205, 304})
    )
    body = draw(st.binary(max_size=300))
    headers = draw(st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=5))
    if framing == "length":
        headers.append(("Content-Length", str(len(body))))
    elif framing == "chunked":
        headers.append(("Transfer-Encoding", "chunked"))
        at = draw(st.integers(0, len(body)))
        chunks = [part for part in (body[:at], body[at:]) if part]
        body = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks)
        body += b"0\r\n\r\n"
    if draw(st.booleans()):
        headers.append(("Connection", draw(st.sampled_from(["close", "keep-alive"]))))
    hints = b"HTTP/1.1 103 Hints\r\nRetry-After: 1\r\n\r\n" * draw(st.integers(0, 2))
    version = draw(st.sampled_from(["1.0", "1.1"])) if framing == "close" else "1.1"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return hints + f"HTTP/{version} {status} Text\r\n{lines}\r\n".encode() + body


def read_by_h11(data: bytes) -> Reading:
    """Read a response with a parser that shares no code with ours."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="POST", target="/", headers=[("Host", "a")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    response, body, is_open = None, b"", True
    while True:
        event = parser.next_event()
        if event is h11.NEED_DATA:
            parser.receive_data(b"")
            is_open = False
        elif isinstance(event, h11.Response):
            response = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            is_reusable = is_open and parser.their_state is h11.DONE
            break
    headers = cast("h11.Response", response).headers
    pauses = [value for name, value in headers if name == b"retry-after"]
    status = cast("h11.Response", response).status_code
    return Reading(status, body, pauses[0] if pauses else b"", None, is_reusable)


@given(data=well_formed())
def test_well_formed_responses_are_read_as_an_independent_parser_reads_them(loop, data):
    assert read(loop, data) == read_by_h11(data)


@pytest.mark.parametrize(
    "more", [b"X", b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"\0"]
)
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_connection_with_more_than_one_response_serves_no_other_request(
    loop, more, is_cut
):
    response = OK + b"Content-Length: 2\r\n\r\nok"
    chunks = [response, more] if is_cut else [response + more]
    assert read(loop, *chunks) == (200, b"ok", b"", None, False)


def test_a_response_before_its_request_counts_but_ends_the_connection(loop):
    connection, _ = connected(loop)
    connection.data_received(OK + b"Content-Length: 0\r\n\r\n")
    loop.run_until_complete(connection.exchange(b"", b""))
    assert (connection.status_code, connection.is_reusable) == (200, False)


@pytest.mark.parametrize("data", RESPONSES[:2])
def test_a_kept_connection_forgets_the_response_before(loop, data):
    connection, _ = connected(loop)
    assert loop.run_until_complete(exchanged(connection, [data])).is_reusable
    connection.begin()
    busy = [b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"]
    reading = loop.run_until_complete(exchanged(connection, busy))
    assert reading == (503, b"", b"", None, True)
    connection.data_received(b"HTTP/1.1")  # without a request
    assert connection.is_closed


def test_a_connection_serves_again_once_both_sides_have_all(loop):
    connection, wire = connected(loop)
    connection.begin()
    head = loop.create_task(connection.exchange(b"", b""))
    loop.run_until_complete(asyncio.sleep(0))
    length = b"Content-Length: %d\r\n\r\n" % (2 * HIGH_BYTES)
    connection.data_received(OK + length + bytes(2 * HIGH_BYTES))
    loop.run_until_complete(head)
    assert not wire.paused
    reusable = [connection.is_reusable]  # the body is not read
    loop.run_until_complete(connection.read())
    reusable.append(connection.is_reusable)
    wire.unsent = 1
    reusable.append(connection.is_reusable)
    assert reusable == [False, True, False]


def test_a_body_without_a_length_ends_with_the_connection_unless_that_breaks(loop):
    for error in (None, ConnectionResetError()):
        connection, _ = connected(loop)
        connection.data_received(OK + b"\r\nab")
        connection.connection_lost(error)
        assert loop.run_until_complete(connection.read()) == b"ab"
        end = loop.create_task(connection.read())
        loop.run_until_complete(asyncio.wait([end]))
        assert end.exception() is error


def test_a_trailer_is_no_header(loop):
    connection, _ = connected(loop)
    loop.run_until_complete(exchanged(connection, [RESPONSES[1]]))
    assert [name for name, _ in connection.headers] == [b"Transfer-Encoding"]


def test_a_head_and_its_body_go_out_together(loop):
    """Some receivers answer the first TLS record, before the body is there."""
    connection, wire = connected(loop)
    connection.data_received(OK + b"\r\n")
    loop.run_until_complete(connection.exchange(b"head", bytes(PART_BYTES)))
    assert wire.written == [PART_BYTES + 4]


def test_the_rest_of_a_large_request_is_not_sent_after_its_response(loop):
    connection, wire = connected(loop)
    connection.pause_writing()
    head = loop.create_task(connection.exchange(b"", bytes(3 * PART_BYTES)))
    loop.run_until_complete(asyncio.sleep(0))
    assert wire.written == [PART_BYTES]
    connection.data_received(OK + b"Content-Length: 0\r\n\r\n")
    loop.run_until_complete(head)
    assert wire.written == [PART_BYTES]
    assert not connection.is_reusable


def test_a_server_waits_while_much_of_its_body_is_not_read(loop):
    connection, wire = connected(loop)
    length = b"Content-Length: %d\r\n\r\n" % (2 * HIGH_BYTES)
    connection.data_received(OK + length + bytes(HIGH_BYTES))
    paused = [wire.paused]
    connection.data_received(b"0")
    paused.append(wire.paused)

    async def read_all() -> int:
        size = len(await connection.read())
        rest = asyncio.ensure_future(connection.read())
        await asyncio.sleep(0)
        paused.append(wire.paused)
        connection.data_received(bytes(HIGH_BYTES - 1))
        return size + len(await rest)

    assert loop.run_until_complete(read_all()) == 2 * HIGH_BYTES
    assert paused == [False, True, False]


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"Content-Length: -1\r\n\r\n",
        b"garbage\r\n\r\n",
        b": a\r\n\r\n",
        b"A: " + b"b" * MAX_HEAD_BYTES,
        b"A: b\r\n" * 20_000,
    ],
)
def test_a_malformed_or_endless_head_is_a_failure(loop, head):
    chunks = [head[at : at + 4096] for at in range(0, len(head), 4096)]
    assert read(loop, OK, *chunks).failure is NotHttpError
