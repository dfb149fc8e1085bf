"""Streams in odd pieces and odd forms: what came before a fault reaches the client."""

import re

import pytest
from structlog.testing import capture_logs

from tests.gateway.chat.harness import (
    PATHS,
    events_of,
    text_of,
)
from tests.gateway.chat.mock_upstream import (
    DONE,
    STREAM,
    USAGE_CHUNK,
    event,
    head,
    in_chunks,
    raw,
    sends,
)
from tests.gateway.chat.upstreams.anthropic_events import (
    TEXT_STREAM,
    named,
)

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
