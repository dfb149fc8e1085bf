"""Streams in odd pieces and odd forms: what came before a fault reaches the client."""

import asyncio
import gzip
import json
import re
import zlib
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.gateway.chat.harness import (
    PATHS,
    events_of,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    COMPLETION,
    DONE,
    STREAM,
    USAGE_CHUNK,
    WHOLE_STREAM,
    answers,
    event,
    head,
    in_chunks,
    raw,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    MESSAGE,
    TEXT_STREAM,
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


def test_an_answer_without_end_is_cut_off(gateway, upstream):
    upstream.script = sends(*[b" " * 2**20] * 40)
    assert gateway.post().status_code == 500


def test_usage_without_a_finish_is_a_chunk_of_its_own(gateway, upstream):
    upstream.script = sends(STREAM[0], event(USAGE_CHUNK), DONE)
    assert gateway.stream()[-1]["usage"] == USAGE_CHUNK["usage"]


def test_chunks_after_a_finish_are_not_lost(gateway, upstream):
    upstream.script = sends(STREAM[2], STREAM[0], STREAM[2], event(USAGE_CHUNK), DONE)
    events = gateway.stream()
    reasons = [item["choices"][0].get("finish_reason") for item in events]
    assert reasons == ["stop", None, "stop"]
    assert [item.get("usage") for item in events] == [None, None, USAGE_CHUNK["usage"]]


def test_a_byte_order_mark_before_an_answer_is_none_of_it(gateway, claude, upstream):
    for post, message in ((gateway.post, COMPLETION), (claude, MESSAGE)):
        upstream.script = answers(MARK + json.dumps(message).encode())
        assert post().content.startswith(b"{")
    refusal = MARK + b'{"error": {"message": "no", "code": 400}}'
    upstream.script = answers(refusal, 400)
    assert gateway.post().json() == {"detail": "no"}


# ── Compressed answers ──────────────────────────────────────────────────────────────


def test_an_answer_and_a_refusal_are_unpacked(gateway, upstream):
    whole = gzip.compress(json.dumps(COMPLETION).encode())
    upstream.script = answers(whole, Content_Encoding="gzip")
    response = gateway.post()
    assert response.json()["choices"] == COMPLETION["choices"]
    assert "Content-Encoding" not in response.headers
    assert upstream.requests[0].headers["accept-encoding"] == "identity"
    refusal = gzip.compress(b'{"error": {"message": "no"}}')
    upstream.script = answers(refusal, 400, Content_Encoding="gzip")
    assert gateway.post().json() == {"detail": "no"}


def test_a_stream_is_unpacked_as_it_comes(gateway, upstream):
    packer = zlib.compressobj(wbits=31)
    first, *rest = [
        packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in WHOLE_STREAM
    ]
    go_on = asyncio.Event()

    async def script(request: Any) -> None:
        begin = head(Transfer_Encoding="chunked", Content_Encoding="gzip")
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
