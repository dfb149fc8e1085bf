"""Streams in odd pieces and odd forms: what came before a fault reaches the client."""

import asyncio
import gzip
import itertools
import json
import re
import zlib
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.gateway.chat.harness import (
    INTERNAL,
    PATHS,
    REQUEST_ID,
    events_of,
    status_and_detail,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    chunk,
    event,
    head,
    in_chunks,
    raw,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
    delta,
    named,
)

MARK = b"\xef\xbb\xbf"


# ── In one read with a fault ────────────────────────────────────────────────────────


def fault_of(kind: str, **more: str) -> bytes:
    return named({"type": "error", "error": {"type": kind, **more}})


@PATHS
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (fault_of("overloaded_error"), 500),
        (fault_of("invalid_request_error", message="no"), 400),
        (event(b"{nonsense"), 500),
    ],
)
def test_text_before_a_fault_in_one_read_arrives_from_anthropic(
    claude, upstream, path, fault, status
):
    upstream.script = sends(b"".join(map(named, TEXT_STREAM)) + fault)
    *events, last = events_of(claude(stream=True, path=path).content)
    assert text_of(events) == "Hello harbour"
    assert "error" in last
    if path.startswith("/v2"):
        assert last["error"]["status_code"] == status


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
    assert text_of(events) == "Hello"
    assert "error" in last
    # Nobody waited for more.
    assert re.search("ConnectionResetError|NotHttpError", str(logs))


# ── Pieces and variants of the format ───────────────────────────────────────────────


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def test_utf8_that_is_split_across_reads_arrives_whole(gateway, upstream):
    text = "Grüße 🌊 an den Häfen"
    said = json.dumps(chunk(text), ensure_ascii=False).encode()
    upstream.script = sends(*pieces(event(said), 1), event(chunk(text)), DONE)
    assert text_of(gateway.stream()) == text * 2


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r", b"\n"])
@pytest.mark.parametrize(
    ("size", "begin"),
    # Bytes alone take longest, and show the most with the longest mark.
    [(1, MARK), *itertools.product([2, 7, 100_000], [b": hello\n\n", MARK])],
)
def test_every_line_end_of_the_standard_is_understood(
    gateway, upstream, line_end, size, begin
):
    text = begin + b"".join(WHOLE_STREAM).replace(b"data: ", b"data:")
    upstream.script = sends(*pieces(text.replace(b"\n", line_end), size))
    assert text_of(gateway.stream()) == "Hello"


def test_data_over_several_lines_is_one_event(gateway, upstream):
    pretty = json.dumps(chunk("x"), indent=1).replace("\n", "\ndata: ").encode()
    upstream.script = sends(event(pretty), STREAM[2], DONE)
    assert text_of(gateway.stream()) == "x"


def test_an_event_without_end_is_cut_off(gateway, upstream):
    upstream.script = sends(STREAM[0], 0.05, b"data: ", *[b"x" * 2**20] * 20)
    assert gateway.stream()[-1]["error"]["status_code"] == 500


def test_an_answer_without_end_is_cut_off(gateway, upstream):
    upstream.script = sends(*[b" " * 2**20] * 40)
    assert gateway.post().status_code == 500


def test_what_comes_behind_done_in_one_read_is_nothing(gateway, upstream):
    upstream.script = sends(b"".join((*STREAM, DONE, STREAM[0])))
    assert text_of(gateway.stream()) == "Hello"


def test_usage_without_a_finish_is_a_chunk_of_its_own(gateway, upstream):
    upstream.script = sends(STREAM[0], event(USAGE_CHUNK), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE_CHUNK["usage"]


def test_chunks_after_a_finish_are_not_lost(gateway, upstream):
    upstream.script = sends(STREAM[2], STREAM[0], STREAM[2], event(USAGE_CHUNK), DONE)
    events = gateway.stream()
    reasons = [item["choices"][0].get("finish_reason") for item in events]
    assert reasons == ["stop", None, "stop"]
    assert [item.get("usage") for item in events] == [None, None, USAGE_CHUNK["usage"]]


@PATHS
@pytest.mark.parametrize(
    "done", [b"data: [DONE] \n\n", b"data:[DONE]\n\n", b"data: [DONE]\t\r\n\r\n"]
)
def test_the_end_is_understood_with_any_spaces(gateway, upstream, path, done):
    upstream.script = sends(*STREAM[:2], done)
    events = gateway.stream(path=path)
    assert text_of(events) == "Hello"
    assert all("error" not in item for item in events)


@PATHS
@pytest.mark.parametrize(
    "empty", [b"data:\n\n", b"data: \n\n", b"data:  \n\n", b"event: error\ndata:\n\n"]
)
def test_an_event_without_data_is_none(gateway, claude, upstream, path, empty):
    upstream.script = sends(empty, STREAM[0], empty, STREAM[1], STREAM[2], empty, DONE)
    assert text_of(gateway.stream(path=path)) == "Hello"
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    whole = (*TEXT_STREAM, stop, {"type": "message_stop"})
    upstream.script = sends(*(part for item in whole for part in (empty, named(item))))
    assert text_of(events_of(claude(stream=True, path=path).content)) == "Hello harbour"


def test_a_byte_order_mark_before_an_answer_is_none_of_it(gateway, claude, upstream):
    for post, message in ((gateway.post, COMPLETION), (claude, MESSAGE)):
        upstream.script = answers(MARK + json.dumps(message).encode())
        assert post().content.startswith(b"{")
    refusal = MARK + b'{"error": {"message": "no", "code": 400}}'
    upstream.script = answers(refusal, 400)
    assert gateway.post().json() == {"detail": "no"}


def test_text_of_another_type_than_text_is_survived(claude, upstream):
    odd = delta(0, type="text_delta", text=5)
    upstream.script = sends(*map(named, (*TEXT_STREAM[:2], odd)), DONE)
    assert claude(stream=True).status_code == 200


@PATHS
def test_a_chunk_of_many_numbers_and_lists_is_not_deep(gateway, upstream, path):
    wide: dict[str, Any] = {"logprobs": [[] for _ in range(1000)]}
    upstream.script = sends(event(chunk("x", **wide)), STREAM[2], DONE)
    assert text_of(gateway.stream(path=path)) == "x"


# ── Compressed answers ──────────────────────────────────────────────────────────────


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data)


def deflated(data: bytes, wbits: int = -15) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzipped), ("deflate", zlib.compress), ("deflate", deflated)],
)
def test_an_answer_and_a_refusal_are_unpacked(gateway, upstream, encoding, pack):
    whole = pack(json.dumps(COMPLETION).encode())
    upstream.script = answers(whole, Content_Encoding=encoding)
    response = gateway.post()
    assert response.json()["choices"] == COMPLETION["choices"]
    assert "Content-Encoding" not in response.headers
    assert upstream.requests[0].headers["accept-encoding"] == "identity"
    refusal = pack(b'{"error": {"message": "no"}}')
    upstream.script = answers(refusal, 400, Content_Encoding=encoding)
    assert gateway.post().json() == {"detail": "no"}


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15)])
def test_a_stream_is_unpacked_as_it_comes(gateway, upstream, encoding, wbits):
    packer = zlib.compressobj(wbits=wbits)
    first, *rest = [
        packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in WHOLE_STREAM
    ]
    go_on = asyncio.Event()

    async def script(request: Any) -> None:
        begin = head(Transfer_Encoding="chunked", Content_Encoding=encoding)
        request.writer.write(begin + in_chunks(first))
        await go_on.wait()
        request.writer.write(in_chunks(*rest, packer.flush()) + b"0\r\n\r\n")

    upstream.script = script
    with gateway.events() as events:
        begun = next(events)
        upstream.loop.set(go_on)
        assert text_of([begun, *events]) == "Hello"


def test_an_answer_that_unpacks_to_gigabytes_is_cut_off(gateway, upstream):
    packer = zlib.compressobj(wbits=-15)
    megabyte = packer.compress(b" " * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    body = megabyte * 1024 + packer.flush()
    upstream.script = answers(body, Content_Encoding="deflate")
    for stream in (False, True):
        assert gateway.post(stream=stream).status_code == 500


def test_a_whole_answer_in_place_of_a_stream_is_a_failure(gateway, upstream):
    upstream.script = answers({"choices": [{"message": {"content": "Ahoy"}}]})
    response = gateway.post(stream=True, headers=REQUEST_ID)
    assert status_and_detail(response) == (500, INTERNAL)
