"""What came before a fault reaches the client, and what servers do to their answers is undone."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import Any

import pytest
import requests
from structlog.testing import capture_logs

from tests.gateway.chat.harness import IDENTITY, MESSAGES, events_of
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    head,
    sends,
)
from tests.gateway.chat.test_faults import INTERNAL, text_of
from tests.gateway.chat.upstreams.test_anthropic import MESSAGE, TEXT_STREAM, delta
from tests.running import PATIENCE_S

PATHS = pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v2/chat/completions"]
)
MARK = b"\xef\xbb\xbf"


def raw(*parts: bytes) -> Any:
    """Parts that are read one by one, and the end of the connection."""

    async def script(request: Any) -> None:
        for part in parts:
            request.writer.write(part)
            await asyncio.sleep(0.02)
        request.writer.close()

    return script


def in_chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def texts(events: list[Any]) -> str:
    return text_of([item for item in events if item != "[DONE]" and "choices" in item])


# ── In one read with a fault ────────────────────────────────────────────────────────


def named(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\n".encode() + event(value)


FAULTS = [
    ("an error", {"type": "error", "error": {"type": "overloaded_error"}}, 500),
    (
        "a refusal",
        {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        400,
    ),
]


@PATHS
@pytest.mark.spec("gateway", "the failure is delivered as a final stream event")
@pytest.mark.parametrize(("_case", "fault", "status"), FAULTS)
def test_text_before_an_error_in_one_read_arrives_from_anthropic(
    claude, upstream, path, _case, fault, status
):
    upstream.script = sends(b"".join(map(named, (*TEXT_STREAM, fault))))
    *events, last = events_of(claude(stream=True, path=path).content)
    assert texts(events) == "Hello harbour"
    assert "error" in last
    if path.startswith("/v2"):
        assert last["error"]["status_code"] == status


@PATHS
def test_text_before_nonsense_in_one_read_arrives_from_anthropic(
    claude, upstream, path
):
    upstream.script = sends(b"".join(map(named, TEXT_STREAM)) + event(b"{nonsense"))
    *events, last = events_of(claude(stream=True, path=path).content)
    assert texts(events) == "Hello harbour"
    assert "error" in last


@PATHS
@pytest.mark.parametrize("fault", [{"error": {"message": "no"}}, b"nonsense", b"[]"])
def test_text_before_an_error_in_one_read_arrives(gateway, upstream, path, fault):
    upstream.script = sends(STREAM[0] + STREAM[1] + event(fault))
    *events, last = gateway.stream(path=path)
    assert texts(events) == "Hello"
    assert "error" in last


@PATHS
@pytest.mark.parametrize(
    ("_case", "end"),
    [
        ("a close", b""),
        ("a wrong size of a chunk", b"zz\r\n"),
        ("half a chunk", b"99\r\nda"),
    ],
)
def test_text_before_a_broken_connection_in_one_read_arrives(
    gateway, upstream, path, _case, end
):
    begin = head(Content_Type="text/event-stream", Transfer_Encoding="chunked")
    upstream.script = raw(begin, in_chunks(STREAM[0], STREAM[1]) + end)
    with capture_logs() as logs:
        *events, last = gateway.stream(path=path)
    assert texts(events) == "Hello"
    assert "error" in last
    # Nobody waited for more.
    assert "ClientPayloadError" in str(logs)


def test_a_refusal_in_place_of_the_first_event_is_an_ordinary_error(claude, upstream):
    upstream.script = sends(named(FAULTS[1][1]))
    response = claude(stream=True)
    assert (response.status_code, response.json()) == (400, {"detail": "no"})


def test_an_error_in_place_of_the_first_event_is_an_ordinary_error(claude, upstream):
    upstream.script = sends(named(FAULTS[0][1]))
    response = claude(stream=True)
    assert (response.status_code, response.json()) == (500, {"detail": INTERNAL})


# ── Variants of the format ──────────────────────────────────────────────────────────


@PATHS
@pytest.mark.parametrize(
    "done", [b"data: [DONE] \n\n", b"data:[DONE]\n\n", b"data: [DONE]\t\r\n\r\n"]
)
def test_the_end_is_understood_with_any_spaces(gateway, upstream, path, done):
    upstream.script = sends(*STREAM[:2], done)
    events = gateway.stream(path=path)
    assert texts(events) == "Hello"
    assert all("error" not in item for item in events)


@PATHS
@pytest.mark.parametrize(
    "empty", [b"data:\n\n", b"data: \n\n", b"data:  \n\n", b"event: error\ndata:\n\n"]
)
def test_an_event_without_data_is_none(gateway, claude, upstream, path, empty):
    upstream.script = sends(empty, STREAM[0], empty, STREAM[1], STREAM[2], empty, DONE)
    assert texts(gateway.stream(path=path)) == "Hello"
    named_events = [part for item in TEXT_STREAM for part in (empty, named(item))]
    stop = named({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    upstream.script = sends(*named_events, stop, empty, named({"type": "message_stop"}))
    assert texts(events_of(claude(stream=True, path=path).content)) == "Hello harbour"


def test_a_byte_order_mark_before_an_answer_is_none_of_it(gateway, claude, upstream):
    upstream.script = answers(
        MARK + json.dumps({**COMPLETION, "model": "small"}).encode()
    )
    response = gateway.post()
    assert response.status_code == 200
    assert response.content.startswith(b"{")
    upstream.script = answers(MARK + json.dumps(MESSAGE).encode())
    assert claude().status_code == 200


def test_a_byte_order_mark_before_a_refusal_is_none_of_it(gateway, upstream):
    upstream.script = answers(MARK + b'{"error": {"message": "no"}}', 400)
    assert gateway.post().json() == {"detail": "no"}


# ── Compressed answers ──────────────────────────────────────────────────────────────


def gzipped(data: bytes) -> bytes:
    """The same bytes at any time: they become names of tests."""
    return gzip.compress(data, mtime=0)


def deflated(data: bytes, wbits: int = -15) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(data) + packer.flush()


ENCODINGS = pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzipped), ("deflate", zlib.compress), ("deflate", deflated)],
)


@ENCODINGS
def test_an_answer_is_unpacked(gateway, upstream, encoding, pack):
    upstream.script = answers(
        pack(json.dumps(COMPLETION).encode()), Content_Encoding=encoding
    )
    response = gateway.post()
    assert response.json()["choices"] == COMPLETION["choices"]
    assert "Content-Encoding" not in response.headers
    assert upstream.requests[0].headers["accept-encoding"] == "identity"


@ENCODINGS
def test_a_refusal_is_unpacked(gateway, upstream, encoding, pack):
    body = pack(b'{"error": {"message": "no"}}')
    upstream.script = answers(body, 400, Content_Encoding=encoding)
    assert gateway.post().json() == {"detail": "no"}


def flushed(parts: tuple[bytes, ...], wbits: int) -> list[bytes]:
    """Each part can be unpacked when it arrives."""
    packer = zlib.compressobj(wbits=wbits)
    packed = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in parts]
    return [*packed, packer.flush()]


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15)])
def test_a_stream_is_unpacked_as_it_comes(gateway, upstream, encoding, wbits):
    parts = flushed(WHOLE_STREAM, wbits)
    seen: list[str] = []

    async def script(request: Any) -> None:
        begin = head(Transfer_Encoding="chunked", Content_Encoding=encoding)
        request.writer.write(begin + in_chunks(parts[0]))
        await go_on.wait()
        request.writer.write(in_chunks(*parts[1:]) + b"0\r\n\r\n")

    go_on = asyncio.Event()
    upstream.script = script
    with requests.post(
        gateway.url + "/v2/chat/completions",
        json={"model": "small", "stream": True, "messages": MESSAGES},
        headers=IDENTITY,
        stream=True,
        timeout=PATIENCE_S,
    ) as response:
        lines = response.iter_lines()
        seen.append(next(lines).decode())
        upstream.loop.set(go_on)
        seen += [line.decode() for line in lines if line]
    assert texts([json.loads(item[6:]) for item in seen]) == "Hello"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("_case", "encoding", "body"),
    [
        ("no gzip at all", "gzip", b"{}"),
        ("cut off", "gzip", gzipped(json.dumps(COMPLETION).encode())[:-20]),
        ("an unknown one", "compress", b"\x1f\x9d\x90"),
        ("several", "gzip, gzip", gzipped(gzipped(b"{}"))),
        ("no decoder for it", "zstd", b"\x28\xb5\x2f\xfd"),
        ("brotli that is none", "br", b"\xff\xff\xff"),
    ],
)
def test_what_cannot_be_unpacked_is_a_failure_of_the_upstream(
    gateway, upstream, stream, _case, encoding, body
):
    upstream.script = answers(body, Content_Encoding=encoding)
    response = gateway.post(stream=stream, headers={"X-Request-Id": "req-7"})
    text = INTERNAL if stream else "Upstream service error for request_id req-7"
    assert (response.status_code, response.json()) == (500, {"detail": text})


def test_an_answer_that_unpacks_to_gigabytes_is_cut_off(gateway, upstream):
    packer = zlib.compressobj(1, wbits=31)
    body = b"".join(packer.compress(b" " * 2**20) for _ in range(1024)) + packer.flush()
    upstream.script = answers(body, Content_Encoding="gzip")
    for stream in (False, True):
        assert gateway.post(stream=stream).status_code == 500


# ── What only a broken server sends ─────────────────────────────────────────────────


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("_case", "data"),
    [
        ("no HTTP", b"\x00\xff\xfe nonsense\r\n\r\n"),
        ("a status of any size", b"HTTP/1.1 99999 X\r\n\r\n"),
        ("a header without end", b"HTTP/1.1 200 X\r\nA: " + b"x" * 2**20),
        (
            "two lengths",
            head(Content_Length="5")[:-2] + b"Content-Length: 6\r\n\r\nhello",
        ),
        ("a negative length", head(Content_Length="-1")),
        ("a short body", head(Content_Length="500") + b"{"),
        (
            "bad UTF-8 in a header",
            b"HTTP/1.1 200 X\r\nA: \xff\xfe\r\nContent-Length: 1\r\n\r\n{",
        ),
        (
            "a switch of protocols",
            b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        ),
        ("no body", head(204)),
        ("bad UTF-8", head() + b'{"choices": [], "id": "\xff"}'),
        ("nesting", head() + b'{"choices":' + b"[" * 100_000),
        (
            "deep nesting that ends",
            head() + b'{"choices":[%s]}' % (b"[" * 300 + b"]" * 300),
        ),
    ],
)
def test_what_is_no_answer_is_a_failure_of_the_upstream(
    gateway, claude, upstream, stream, _case, data
):
    upstream.script = raw(data)
    for post in (gateway.post, claude):
        response = post(stream=stream, headers={"X-Request-Id": "req-7"})
        text = INTERNAL if stream else "Upstream service error for request_id req-7"
        assert (response.status_code, response.json()) == (500, {"detail": text})


DEEP = b"[" * 300 + b"]" * 300


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "x", "name": "f", "input": "DEEP"},
        {"type": "tool_use", "id": "DEEP", "name": "f", "input": {}},
    ],
)
def test_a_message_nested_too_deeply_is_a_failure_of_the_upstream(
    claude, upstream, block
):
    text = json.dumps({**MESSAGE, "content": [block]}).encode()
    upstream.script = answers(text.replace(b'"DEEP"', DEEP))
    response = claude(headers={"X-Request-Id": "req-7"})
    assert response.json() == {"detail": "Upstream service error for request_id req-7"}


@pytest.mark.parametrize(
    "data",
    [
        event(b'{"choices":%s}' % DEEP),
        event(b'{"choices":[{"delta":null,"index":%s}]}' % DEEP),
        event(b'{"model":"there","choices":[],"a":%s}' % DEEP),
    ],
)
@PATHS
def test_a_chunk_that_cannot_be_written_ends_the_stream(gateway, upstream, path, data):
    upstream.script = sends(STREAM[0], data)
    *events, last = gateway.stream(path=path, headers={"X-Request-Id": "req-7"})
    assert texts(events) == "Hel"
    assert "Upstream service error for request_id req-7" in json.dumps(last)


def test_text_of_another_type_than_text_is_survived(claude, upstream):
    upstream.script = sends(
        *map(named, TEXT_STREAM[:2]), named(delta(0, type="text_delta", text=5)), DONE
    )
    assert claude(stream=True).status_code == 200


@PATHS
def test_a_chunk_of_many_numbers_and_lists_is_not_deep(gateway, upstream, path):
    wide: dict[str, Any] = {"logprobs": [[] for _ in range(1000)]}
    upstream.script = sends(event(chunk("x", **wide)), STREAM[2], DONE)
    assert texts(gateway.stream(path=path)) == "x"
