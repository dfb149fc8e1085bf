"""Server-sent events in odd pieces and odd forms (WHATWG HTML, sections 9.2.5 and 6)."""

import pytest

from gateway.chat import sse
from gateway.chat.errors import UpstreamServiceError
from gateway.chat.sse import BlockReader, EventReader

MARK = b"\xef\xbb\xbf"
STREAM = b': hello\n\ndata: {"a": "\xc3\xa9"}\n\ndata:x\n\nevent: y\ndata: {"b":\ndata: 1}\n\n'
EVENTS = [b'{"a": "\xc3\xa9"}', b"x", b'{"b":\n1}']


def read(data: bytes, size: int, reader: EventReader) -> list[bytes]:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [event for part in parts for event in reader.feed(part)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("begin", [b"", MARK])
def test_every_line_end_is_understood_wherever_it_is_cut(line_end, size, begin):
    data = begin + STREAM.replace(b"\n", line_end)
    assert read(data, size, EventReader()) == EVENTS


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_whole_events_stay_as_they_are(size):
    assert read(STREAM, size, BlockReader()) == STREAM.split(b"\n\n")[:-1]


@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: [DONE] \n\n", [sse.DONE]),
        (b"data:[DONE]\n\n", [sse.DONE]),
        (b"data: [DONE]\t\r\n\r\n", [sse.DONE]),
        (b"data:\n\ndata: \n\ndata:  \n\nevent: error\ndata:\n\ndata\n\n", []),
        (b"error: {}\n\n{}\n\nid: 1\n\n", []),
        (b"data: {} \n\ndata: cut", [b"{} "]),
    ],
)
def test_data_that_is_empty_is_no_event(data, events):
    assert EventReader().feed(data) == events


def test_an_event_without_end_is_refused_and_those_before_it_are_read(monkeypatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    reader = EventReader()
    assert reader.feed(b"data: 1\n\n" + b"x" * 90) == [b"1"]
    with pytest.raises(UpstreamServiceError):
        reader.feed(b"x" * 20)
