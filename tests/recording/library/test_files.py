"""Recording files: what is accepted, and how a fault is named."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recording.library import files
from recording.library.files import RecordingFileError, read
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE, SUMMARY_COMPLETED_SCHEMA

SEGMENT = {"speaker": "Ada", "start": 0, "end": 1.5, "text": "Hello"}
SUMMARY = {"label": "Notes", "content": "x", "format": "markdown"}


def refused(value: Any) -> str:
    raw = value if isinstance(value, bytes) else orjson.dumps(value)
    with pytest.raises(RecordingFileError) as caught:
        read(raw)
    return str(caught.value)


@pytest.mark.spec("recording", "data of summary.completed: fields")
@pytest.mark.spec(
    "recording",
    "transcript: {language?, text, truncated, segments?}",
    "summaries: items {label, content, format, template_name?}",
    "transcript segment: {speaker, start, end, text}, in seconds",
)
def test_the_fields_are_exactly_those_of_the_spec_and_each_is_kept():
    read_back = read(orjson.dumps(SUMMARY_COMPLETED_SAMPLE))
    assert read_back.content == SUMMARY_COMPLETED_SAMPLE
    assert list(read_back.content) == list(SUMMARY_COMPLETED_SCHEMA["properties"])
    assert read_back.ignored == ()


@pytest.mark.spec("recording", "only audio_id is guaranteed")
def test_the_audio_id_alone_is_a_recording():
    assert read(b'{"audio_id": "a"}').content == {"audio_id": "a"}


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(text=TEXT)
@pytest.mark.spec("recording", "texts are kept to the letter")
def test_texts_are_kept_to_the_letter(text):
    summary = SUMMARY | {"content": text, "format": text}
    content = {"audio_id": "a", "transcript": {"text": text}, "summaries": [summary]}
    assert read(orjson.dumps(content)).content == content


# A wrong type for each kind of field, and each bound.
WRONG: dict[str, list[Any]] = {
    "audio_id": [None, 1, "", "a\0", "a\n", "x" * 256],
    "report_id": [None, [], "", "\0", "x" * 256],
    "status": [None, "3", 1.5, True],
    "title": [1, {}, "x" * 2001],
    "duration_ms": ["1", 1.5, True, -1],
    "recorded_at": [
        *(None, 1, "", "yesterday", "2026-13-01", "2026-11-20 09:30", "20:15"),
        *("2026-W47-5", "2026-11-20T25:00Z", "2026-11-20T09:30Z\0"),
        *("\uff12026-11-20", "2026-11-20T09:30:00+99:00"),
    ],
    "transcript": [None, [], "x"],
    "summaries": [None, {}, "x"],
}
WRONG_INSIDE: list[tuple[str, Any]] = [
    ("transcript.language", {"transcript": {"text": "", "language": 1}}),
    ("transcript.language", {"transcript": {"text": "", "language": "x" * 256}}),
    ("transcript.text", {"transcript": {"text": None}}),
    ("transcript lacks the field text", {"transcript": {}}),
    ("transcript.truncated", {"transcript": {"text": "", "truncated": 1}}),
    ("transcript.segments", {"transcript": {"text": "", "segments": {}}}),
    ("transcript.segments[0]", {"transcript": {"text": "", "segments": [None]}}),
    ("summaries[0]", {"summaries": ["x"]}),
    ("summaries[0].template_name", {"summaries": [SUMMARY | {"template_name": None}]}),
]
for name in SEGMENT:
    segments = [SEGMENT, {key: SEGMENT[key] for key in SEGMENT if key != name}]
    lacking = {"transcript": {"text": "", "segments": segments}}
    WRONG_INSIDE.append((f"transcript.segments[1] lacks the field {name}", lacking))
    for value in (None, True):
        wrong = {"transcript": {"text": "", "segments": [SEGMENT | {name: value}]}}
        WRONG_INSIDE.append((f"transcript.segments[0].{name}", wrong))
for name in SUMMARY:
    summary = {key: SUMMARY[key] for key in SUMMARY if key != name}
    WRONG_INSIDE += [
        (f"summaries[1] lacks the field {name}", {"summaries": [SUMMARY, summary]}),
        (f"summaries[0].{name}", {"summaries": [SUMMARY | {name: 1}]}),
    ]


@pytest.mark.spec(
    "recording", "import errors name the field; syntax errors name line and column"
)
def test_a_wrong_field_is_named():
    for name, values in WRONG.items():
        for value in values:
            message = refused({"audio_id": "a", name: value})
            assert message.startswith(f"{name} must "), (name, value)


def test_a_wrong_field_inside_is_named():
    for name, fields in WRONG_INSIDE:
        message = refused({"audio_id": "a", **fields})
        assert message.startswith(name), (name, message)


def test_a_number_of_more_than_64_bits_is_refused():
    raw = b'{"audio_id": "a", "status": 18446744073709551616}'
    assert "status must be an integer of at most 64 bits" in refused(raw)


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-20",
        "2026-11-20T09:30",
        "2026-11-20T09:30:00Z",
        "2026-11-20T09:30:00.123456789+05:30",
        "2026-11-20T09:30:00-0800",
    ],
)
def test_times_are_kept_as_they_came(time):
    content = {"audio_id": "a", "recorded_at": time}
    assert read(orjson.dumps(content)).content == content


def test_a_missing_audio_id_is_named():
    assert refused({}) == "the recording lacks the field audio_id"


@pytest.mark.parametrize(
    ("_case", "raw", "words"),
    [
        ("empty", b"", "line 1, column 1: not JSON"),
        ("cut off", b'{"audio_id":\n "a"', "line 2, column"),
        ("a comma too much", b'{\n"audio_id": "a",\n}', "line 2, column 16: not JSON"),
        ("not an object", b"[]", "the recording must be an object"),
        ("two documents", b"{}\n{}", "line 2, column 1: not JSON"),
        ("not UTF-8", b'{\n"audio_id": "\xff"}', "the file is not UTF-8 at byte 15"),
        ("UTF-16", '{"audio_id": "a"}'.encode("utf-16"), "the file is not UTF-8"),
        ("a surrogate", b'{"audio_id": "\\ud800"}', "line 1, column"),
        ("NaN", b'{"audio_id": "a", "status": NaN}', "not JSON"),
        ("infinity", b'{"audio_id": "a", "status": 1e999}', "not JSON"),
        ("deep nesting", b"[" * 100_000, "depth"),
        (
            "deep in a field",
            b'{"audio_id": ' + b"[" * 900 + b"]" * 900 + b"}",
            "string",
        ),
        ("raw NUL", b'{"audio_id": "\0"}', "not JSON"),
    ],
)
def test_what_is_no_recording_is_refused_with_its_place(_case, raw, words):
    assert words in refused(raw)


def test_a_file_over_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    assert refused(b'{"audio_id": "a"}') == "the file is larger than 10 bytes"


def test_a_file_of_too_many_values_is_refused():
    raw = b'{"audio_id": "a", "b": [' + b"1," * 1_000_000 + b"1]}"
    assert refused(raw) == "the file has more than 1000000 values"


def test_unknown_fields_are_left_out_and_the_outermost_are_named():
    known = {
        "audio_id": "a",
        "transcript": {"text": "", "segments": [SEGMENT] * 3},
        "summaries": [SUMMARY],
    }
    transcript = {"text": "", "segments": [SEGMENT | {"mood": 1}] * 3, "x": {}}
    more = {"colour": "red", "summaries": [SUMMARY | {"": None}], "b": 1}
    document = read(orjson.dumps(known | more | {"transcript": transcript}))
    assert document.ignored == ("b", "colour")
    # As JSON: 0 stays 0 and is not 0.0.
    assert orjson.dumps(document.content) == orjson.dumps(known)
