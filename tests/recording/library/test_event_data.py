import orjson
import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from recording.library import event_data
from recording.library.event_data import TARGET, prefix, trimmed, with_markdown
from webhooks_core.ids import public_id
from webhooks_core.times import iso

# Lone surrogates cannot be imported: JSON with them is refused.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
SEGMENT = st.fixed_dictionaries(
    {
        "speaker": TEXT,
        "start": st.floats(0, 1e5),
        "end": st.floats(0, 1e5),
        "text": TEXT,
    }
)
TRANSCRIPT = st.fixed_dictionaries(
    {"text": TEXT},
    optional={"language": TEXT, "segments": st.lists(SEGMENT, max_size=5)},
)
SUMMARY = st.fixed_dictionaries(
    {"label": TEXT, "content": TEXT, "format": st.sampled_from(["markdown", "docx"])},
    optional={"template_name": TEXT},
)
CONTENT = st.fixed_dictionaries(
    {"audio_id": st.just("aud_1"), "transcript": TRANSCRIPT},
    optional={
        "title": TEXT,
        "status": st.integers(0, 9),
        "summaries": st.lists(SUMMARY, max_size=4),
    },
)


def body_of(data):
    first = {"id": public_id("evt_"), "type": "summary.completed"}
    return orjson.dumps(first | {"created_at": iso(timezone.now()), "data": data})


def build(content, target=TARGET):
    """Return the payload of a recording, as an import makes it."""
    return trimmed(with_markdown(content), target=target)


def with_text(text, **fields):
    return {"audio_id": "aud_1", "transcript": {"text": text, **fields}}


@pytest.mark.spec(
    "recording",
    "payload size: targets about 1 MiB",
    "payloads can exceed the target: summaries alone",
)
@given(content=CONTENT, target=st.integers(0, 4000))
def test_a_body_is_over_the_target_only_when_all_but_the_transcript_is(content, target):
    body = body_of(build(content, target=target))
    given_transcript = content["transcript"]
    bare = {"text": "", "truncated": bool(given_transcript["text"])}
    if "language" in given_transcript:
        bare["language"] = given_transcript["language"]
    empty = content | {"transcript": bare}
    assert len(body) <= max(target, len(body_of(empty)))
    orjson.loads(body.decode("utf-8"))


@pytest.mark.spec("recording", "summaries are never truncated")
@given(content=CONTENT, target=st.integers(0, 4000))
@pytest.mark.spec("recording", "a placeholder note is a summary like any other")
def test_summaries_and_plain_fields_are_never_touched(content, target):
    data = build(content, target=target)
    del content["transcript"], data["transcript"]
    assert data == content


@pytest.mark.spec("recording", "segments removed first, then text cut, truncated true")
@given(content=CONTENT, target=st.integers(0, 4000))
def test_segments_are_dropped_before_the_text_and_truncated_marks_a_cut(
    content, target
):
    before, after = content["transcript"], build(content, target=target)["transcript"]
    assert before["text"].startswith(after["text"])
    assert after["truncated"] is (after["text"] != before["text"])
    if after["truncated"]:
        assert "segments" not in after
    assert after.get("segments") in (None, before.get("segments"))


@given(text=TEXT, size=st.integers(-5, 500))
def test_a_prefix_is_the_longest_that_fits(text, size):
    prefix_text = prefix(text, size=size)
    assert text.startswith(prefix_text)
    assert len(orjson.dumps(prefix_text)) - 2 <= max(size, 0)
    if prefix_text != text:
        longer = text[: len(prefix_text) + 1]
        assert len(orjson.dumps(longer)) - 2 > size


@pytest.mark.parametrize(
    ("_case", "character"),
    [
        ("ASCII", "a"),
        ("two bytes", "é"),
        ("three bytes", "語"),
        ("four bytes", "🎙"),
        ("an escape of two bytes", '"'),
        ("an escape of six bytes", "\x01"),
        ("NUL", "\0"),
    ],
)
@pytest.mark.spec("recording", "truncating transcript text on a UTF-8 boundary")
def test_a_long_text_fills_the_target_to_the_last_character(_case, character):
    data = build(with_text(character * TARGET))
    size = len(body_of(data))
    assert TARGET - event_data.LONGEST_UNIT < size <= TARGET
    assert data["transcript"]["truncated"] is True


def test_a_body_of_exactly_the_target_is_left_alone():
    room = TARGET - len(body_of(with_text("", truncated=False)))
    data = build(with_text("a" * room))
    assert len(body_of(data)) == TARGET
    assert data["transcript"] == {"truncated": False, "text": "a" * room}
    assert build(with_text("a" * (room + 1)))["transcript"]["truncated"] is True


@pytest.mark.spec("recording", "segments removed first, then text cut, truncated true")
def test_without_its_segments_a_transcript_may_fit_uncut():
    segment = {"speaker": "Ada", "start": 0, "end": 1, "text": "word " * 100}
    transcript = {"text": "word", "segments": [segment] * 5000}
    data = build({"audio_id": "aud_1", "transcript": transcript})
    assert data["transcript"] == {"truncated": False, "text": "word"}


def test_a_text_that_was_cut_before_stays_marked():
    data = build(with_text("beginning", truncated=True))
    assert data["transcript"] == {"text": "beginning", "truncated": True}


@pytest.mark.spec("recording", "only audio_id is guaranteed: absent stays absent")
@pytest.mark.spec(
    "recording",
    "report_id is absent for auto-analyzed recordings",
    "transcript and summaries may each be omitted",
)
def test_what_is_absent_stays_absent():
    assert build({"audio_id": "aud_1"}) == {"audio_id": "aud_1"}


def summary(content, format_="html"):
    return {"label": "Notes", "content": content, "format": format_}


def built(summary):
    return build({"audio_id": "aud_1", "summaries": [summary]})["summaries"][0]


@pytest.mark.spec("recording", "unknown formats pass through unchanged")
@pytest.mark.parametrize("format_", ["markdown", "docx", "HTML+", ""])
def test_other_formats_pass_unchanged(format_):
    source = summary("<b>x</b>", format_)
    assert built(source) == source


@pytest.mark.spec("recording", "conversion failures pass through unchanged")
@pytest.mark.parametrize("html", ["%PDF-1.4 \x00\x01" * 50, "<!-- nothing -->", ""])
def test_what_does_not_convert_passes_unchanged(html):
    assert built(summary(html)) == summary(html)
