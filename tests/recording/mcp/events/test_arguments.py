"""Arguments: which recordings match, and what a subscription gets of one."""

from __future__ import annotations

import unicodedata

import orjson
import pytest

from recording.mcp.events.arguments import MAX_BYTES, Arguments
from recording.mcp.events.errors import InvalidParamsError
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE

SUMMARY = {"label": "Summary", "format": "markdown"}


@pytest.mark.spec("mcp-events", "InvalidParams for arguments outside inputSchema")
@pytest.mark.parametrize(
    "arguments",
    [
        {"title_contains": ""},
        {"title_contains": None},
        {"title_contains": 5},
        {"title_contains": "x" * 201},
        {"label": []},
        {"min_duration_ms": -1},
        {"min_duration_ms": 1.5},
        {"min_duration_ms": True},
        {"include_transcript": "yes"},
        {"severity": "P1"},
    ],
)
def test_what_the_schema_does_not_allow_is_refused_by_name(arguments):
    with pytest.raises(InvalidParamsError, match=next(iter(arguments))):
        Arguments.read(arguments)


@pytest.mark.spec("mcp-events", "arguments may be filters or transforms")
@pytest.mark.parametrize(
    ("arguments", "matches"),
    [
        ({}, True),
        ({"title_contains": "WEEKLY"}, True),
        ({"title_contains": "monthly"}, False),
        ({"label": "Summary"}, True),
        ({"label": "summary"}, False),
        ({"min_duration_ms": 1_834_000}, True),
        ({"min_duration_ms": 1_834_001}, False),
        ({"title_contains": "weekly", "label": "Other"}, False),
    ],
)
def test_filters(arguments, matches):
    assert Arguments.read(arguments).match(SUMMARY_COMPLETED_SAMPLE) is matches


def test_a_recording_without_the_field_matches_no_filter_on_it():
    bare = {"audio_id": "aud_1"}
    assert Arguments.read({}).match(bare)
    for arguments in ({"title_contains": "x"}, {"label": "x"}, {"min_duration_ms": 1}):
        assert not Arguments.read(arguments).match(bare)


@pytest.mark.spec("mcp-events", "payloads are minimal: full content by tools")
def test_the_transcript_comes_only_where_it_was_asked_for():
    small = Arguments.read({}).shape(SUMMARY_COMPLETED_SAMPLE)
    assert "transcript" not in small
    assert small["summaries"] == SUMMARY_COMPLETED_SAMPLE["summaries"]
    full = Arguments.read({"include_transcript": True}).shape(SUMMARY_COMPLETED_SAMPLE)
    assert full["transcript"] == SUMMARY_COMPLETED_SAMPLE["transcript"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_title_has_its_letters_as_one_character_or_as_several(form):
    data = SUMMARY_COMPLETED_SAMPLE | {
        "title": unicodedata.normalize(form, "Café 회의")
    }
    for wanted in ("CAFÉ", "회의"):
        for asked in ("NFC", "NFD"):
            text = unicodedata.normalize(asked, wanted)
            assert Arguments.read({"title_contains": text}).match(data)


def size_of(data):
    return len(orjson.dumps(data))


def test_a_long_transcript_is_cut_and_the_summaries_stay():
    text = "Grüße \U0001f600 " * 100_000
    data = SUMMARY_COMPLETED_SAMPLE | {
        "transcript": {"text": text, "truncated": False, "segments": []}
    }
    shaped = Arguments.read({"include_transcript": True}).shape(data)
    assert 0.9 * MAX_BYTES < size_of(shaped) < MAX_BYTES
    assert shaped["transcript"]["truncated"] is True
    assert text.startswith(shaped["transcript"]["text"])
    assert shaped["summaries"] == data["summaries"]
    assert "omitted" not in shaped


def test_what_does_not_fit_at_all_is_left_out_whole_and_named():
    data = SUMMARY_COMPLETED_SAMPLE | {
        "summaries": [SUMMARY | {"content": "x" * MAX_BYTES}]
    }
    shaped = Arguments.read({"include_transcript": True}).shape(data)
    assert shaped["omitted"] == ["transcript", "summaries"]
    assert size_of(shaped) < MAX_BYTES
    assert (shaped["audio_id"], shaped["title"]) == (data["audio_id"], data["title"])


def test_equal_arguments_have_one_digest_and_others_another():
    one = Arguments.read({"label": "x", "min_duration_ms": 1})
    same = Arguments.read({"min_duration_ms": 1, "label": "x"})
    other = Arguments.read({"min_duration_ms": 1})
    assert one.digest("a", "b") == same.digest("a", "b")
    digests = {
        one.digest("a", "b"),
        one.digest("ab", ""),
        one.digest("a"),
        other.digest("a", "b"),
    }
    assert len(digests) == 4
