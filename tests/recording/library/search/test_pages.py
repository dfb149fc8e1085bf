"""Search over one account's recordings."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recording.library import importing
from recording.library.search import SearchQueryError, limits, pages, search, words
from recording.library.search.hits import MOST_OF_RECORDING, snippet
from recording.models import Recording, SearchTerms
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

EAST = timezone(timedelta(hours=1))
SEGMENTS = [
    {"speaker": "Ada", "start": 0.5, "end": 2.5, "text": "Welcome to the harbour."},
    {"speaker": "Ben", "start": 2.5, "end": 7, "text": "The budget is cut in half."},
]


def add(account, audio_id, **content):
    raw = orjson.dumps({"audio_id": audio_id} | content)
    importing.import_recording(account=account, raw=raw, publish_event=False)


def summary(content, format_="markdown"):
    return {"label": "Notes", "content": content, "format": format_}


def transcript(text, segments=()):
    return {"text": text, "segments": list(segments)}


def found(account, query, **options):
    """Return the ids of the recordings of all pages, each once."""
    return list(
        dict.fromkeys(hit.audio_id for hit in all_hits(account, query, **options))
    )


def all_hits(account, query, **options):
    page = search(account, query, **options)
    hits = page.hits
    while page.next_cursor is not None:
        page = search(account, query, cursor=page.next_cursor, **options)
        hits += page.hits
    return hits


@pytest.fixture
def meetings(user):
    add(user, "plain", title="Standup", transcript=transcript("We talk of the budget"))
    add(user, "segments", title="Review", transcript=transcript("", SEGMENTS))
    add(user, "summary", title="Weekly", summaries=[summary("The budget grows.")])
    add(user, "title", title="Budget 2027", summaries=[summary("No numbers")])


def test_all_words_must_stand_somewhere_in_the_recording(user, meetings):
    assert found(user, "budget no") == ["title"]
    assert found(user, "NUMBERS budget") == ["title"]
    assert found(user, "budget absent") == []
    assert found(user, "budge") == []


def test_the_newest_recording_comes_first_by_its_own_time(user):
    for day in (2, 3, 1):
        add(user, f"day {day}", title="Standup", recorded_at=f"2026-01-0{day}")
    assert found(user, "standup", limit=1) == ["day 3", "day 2", "day 1"]
    since, until = datetime(2026, 1, 2), datetime(2026, 1, 3, tzinfo=UTC)  # noqa: DTZ001
    assert found(user, "standup", since=since, until=until) == ["day 2"]


def test_a_segment_is_a_hit_with_its_speaker_and_times(user, meetings):
    [hit] = search(user, '"cut in half"').hits
    assert (hit.audio_id, hit.title, hit.field) == ("segments", "Review", "transcript")
    assert (hit.speaker, hit.start_s, hit.end_s) == ("Ben", 2.5, 7)
    assert hit.snippet == "The budget is **cut in half**."


def test_a_transcript_without_segments_and_a_phrase_across_them_are_found(
    user, meetings
):
    [hit] = search(user, "talk").hits
    assert (hit.snippet, hit.speaker, hit.start_s) == (
        "We **talk** of the budget",
        None,
        None,
    )
    whole = "Welcome to the harbour. The budget is cut in half."
    add(user, "both", transcript=transcript(whole, SEGMENTS))
    [hit] = search(user, '"harbour the budget"').hits
    assert (hit.audio_id, hit.start_s) == ("both", None)


def test_what_both_segments_and_text_have_is_one_hit(user):
    add(user, "both", transcript=transcript(SEGMENTS[0]["text"], SEGMENTS))
    assert [hit.start_s for hit in search(user, "harbour").hits] == [0.5]


def test_a_recording_has_few_hits_and_those_with_more_of_the_words_first(user):
    texts = ["budget", "budget", "budget", "budget", "cut the budget"]
    segments = [SEGMENTS[0] | {"text": text} for text in texts]
    add(user, "long", transcript=transcript("", segments))
    hits = search(user, "cut budget").hits
    assert len(hits) == MOST_OF_RECORDING
    assert hits[0].snippet == "**cut** the **budget**"


def test_html_is_searched_as_text(user):
    add(user, "html", summaries=[summary("<p class=x>A <b>bold</b> plan</p>", "html")])
    assert found(user, "class") == []
    [hit] = search(user, "bold").hits
    assert "bold" in hit.snippet
    assert "<b>" not in hit.snippet


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ÄRGER in Straße", "arger STRASSE"),
        ("cafe\u0301 olé", "CAFÉ ole"),
        ("Война и мир", "ВОЙНА"),
        ("οδυσσεύς", "ΟΔΥΣΣΕΥΣ"),
        ("今日は会議です", "会議"),
        ("今日は会議です", "今日は会"),
        ("ガギグ", "\uff76\uff9e"),
        ("오늘 회의에서", "회의"),
        (unicodedata.normalize("NFD", "오늘 회의에서"), "회의"),
        ("오늘 회의에서", unicodedata.normalize("NFD", "회의")),
        ("a" * (words.PIECE - 2) + " " + unicodedata.normalize("NFD", "각"), "각"),
        ("हिन्दी में", "हिन्दी"),
        ("ประชุมวันนี้", "วันนี้"),
        ("full\uff37idth \ufb01n", "fullwidth FIN"),
        ("soft\u00adhyphen", "softhyphen"),
        ("mail to a.b@c.example now", "a.b@c.example"),
        ("don't", "don't"),
        ("NEAR AND OR NOT", "not near"),
        ("snake_case", "case"),
        ("C:\\Temp 100% *x* ^y", '100% x" ^y*'),
    ],
)
def test_case_accents_and_scripts(user, text, query):
    add(user, "a", transcript=transcript(text))
    assert found(user, query) == ["a"]
    assert "**" in search(user, query).hits[0].snippet


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("会 議", "会議議"),
        ("議会", "会議"),
        ("हिन्दी", "हिन"),
        ("mail a then b", "a.b"),
        ("cut the half", '"half cut"'),
        ("x" * 900, "x" * 899),
    ],
)
def test_what_is_not_there_is_not_found(user, text, query):
    add(user, "a", transcript=transcript(text))
    assert found(user, query) == []


def test_very_long_words_are_found(user):
    add(user, "a", transcript=transcript("x" * 900 + " " + "y" * 200_000 + " y"))
    assert found(user, "X" * 900) == ["a"]
    assert found(user, "y") == ["a"]


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("", {}, "no word"),
        ('"" \0 *', {}, "no word"),
        ("x" * 1001, {}, "longer than 1000"),
        (" ".join(map(str, range(33))), {}, "more than 32"),
        ('"' + "a " * 33 + '"', {}, "phrase of more than 32"),
        ("x." * 32 + "x", {}, "phrase of more than 32"),
        ("会" * 33, {}, "phrase of more than 32"),
        ("a " + "วันนี้" * 20, {}, "phrase of more than 32"),
        ("a", {"limit": 0}, "limit must be"),
        ("a", {"limit": 101}, "limit must be"),
        ("a", {"cursor": "???"}, "cursor is not one"),
        ("a", {"since": datetime.min.replace(tzinfo=EAST)}, "since is out of range"),
        ("a", {"until": datetime.min.replace(tzinfo=EAST)}, "until is out of range"),
    ],
)
def test_what_cannot_be_searched_is_told(user, query, options, message):
    with pytest.raises(SearchQueryError, match=message):
        search(user, query, **options)


@given(query=st.text(max_size=40))
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_query_is_answered_or_refused(user, query):
    with suppress(SearchQueryError):
        assert search(user, query).next_cursor is None


def test_accounts_see_only_their_own_recordings(user, meetings):
    other = UserFactory.create()
    add(other, "title", title="Budget of another")
    assert [hit.title for hit in all_hits(other, "budget")] == ["Budget of another"]
    assert "Budget of another" not in [hit.title for hit in all_hits(user, "budget")]
    assert found(other, f"0{user.pk}") == []
    cursor = search(user, "budget", limit=1).next_cursor
    assert search(other, "budget", cursor=cursor).hits == []


def test_a_replaced_or_deleted_recording_leaves_nothing_in_the_index(user, meetings):
    add(user, "title", title="Another title")
    assert found(user, "2027") == []
    assert found(user, "another") == ["title"]
    Recording.objects.get(audio_id="summary").delete()
    assert found(user, "grows") == []
    user.delete()
    assert not SearchTerms.objects.exists()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT * FROM recording_search WHERE recording_search MATCH '1budget'"
            )
            assert cursor.fetchall() == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_pages_are_the_whole_in_order(user, limit):
    for number in range(5):
        add(
            user,
            f"aud_{number}",
            title="Budget" if number % 2 else "",
            transcript=transcript("", [SEGMENTS[1]] * number),
            recorded_at="2026-01-01",
        )
    whole = search(user, "budget", limit=100)
    assert whole.next_cursor is None
    assert [hit.audio_id[-1] for hit in whole.hits] == list("4443332211")
    first = search(user, "budget", limit=limit)
    assert first.hits == whole.hits[:limit]
    assert all_hits(user, "budget", limit=limit) == whole.hits


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_RECORDINGS", 1), ("MOST_BYTES", 1)]
)
def test_a_page_reads_a_limited_part_and_the_next_goes_on(
    user, monkeypatch, limit, value
):
    for number in range(4):
        text = "the budget" if number == 0 else "budget the"
        add(user, f"aud_{number}", transcript=transcript(text))
    monkeypatch.setattr(pages, limit, value)
    page = search(user, '"the budget"')
    assert page.hits == []
    assert page.next_cursor is not None
    assert found(user, '"the budget"') == ["aud_0"]


class Clock:
    """A clock that goes on by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_page_ends_with_its_time_and_the_next_goes_on(user, monkeypatch):
    for number in range(4):
        add(user, f"aud_{number}", transcript=transcript("the budget"))
    monkeypatch.setattr(limits, "monotonic", Clock(limits.DEADLINE_S / 5))
    page = search(user, '"the budget"')
    assert 0 < len(page.hits) < 4
    assert found(user, '"the budget"') == ["aud_3", "aud_2", "aud_1", "aud_0"]


@pytest.mark.parametrize("query", ["budget", '"the budget"', "会議"])
def test_a_recording_that_takes_too_long_is_told(user, monkeypatch, query):
    add(user, "a", transcript=transcript("the budget 会議"))
    monkeypatch.setattr(limits, "monotonic", Clock(limits.DEADLINE_S + 1))
    with pytest.raises(SearchQueryError, match="takes too long"):
        search(user, query)


@pytest.mark.parametrize("token", ["a ", "é ", "会", "a\u0327-", "วั"])
def test_a_phrase_of_32_words_is_found_behind_many_that_only_begin_like_it(user, token):
    text = token * 20_000 + "議 " + token * 31 + "x. The end"
    add(user, "a", title="議", transcript=transcript(text))
    (hit,) = search(user, f'"{token * 31}x"').hits
    assert re.sub(r"\W", "", hit.snippet).endswith("xTheend")
    assert hit.snippet.count("**") == 2


def test_a_snippet_is_one_line_around_the_first_match():
    text = "before " * 40 + "the\r\n\0budget " + "after " * 60
    assert snippet(text, [("budget",)]).startswith("… before before")
    assert "before the **budget** after" in snippet(text, [("budget",)])
    assert snippet(text, [("budget",)]).endswith("…")
    assert len(snippet(text, [("budget",)])) < 260


def test_a_snippet_marks_whole_characters():
    assert (
        snippet("Groß und e\u0301te\u0301", [("gross",), ("ete",)])
        == "**Groß** und **e\u0301te\u0301**"
    )


# ── Compared with a search by hand ──────────────────────────────────────────────────

LETTERS = st.sampled_from(
    ["a", "b", "é", "E\u0301", "ß", "会", "議", "が", " ", " ", "-", "."]
)
TEXTS = st.lists(LETTERS, max_size=10).map("".join)


def plain(text):
    """Return a text's tokens, found character by character."""
    kept = ""
    for character in unicodedata.normalize("NFKD", text).casefold():
        if "\u0300" <= character <= "\u036f":
            continue
        if "\u3040" <= character <= "\u9fff" and character != "\u3099":
            character = " " + character  # noqa: PLW2901
        elif kept and "\u3040" <= kept[-1] <= "\u9fff" and character != "\u3099":
            kept += " "
        kept += character
    return re.split(r"[ .-]+", kept.strip(" .-"))


def has(texts, query):
    wanted = [plain(chunk) for chunk in query.split() if plain(chunk) != [""]]
    return all(any(is_in(phrase, plain(text)) for text in texts) for phrase in wanted)


def is_in(phrase, tokens):
    ends = range(len(phrase), len(tokens) + 1)
    return any(tokens[end - len(phrase) : end] == phrase for end in ends)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="reads PostgreSQL's plans")
def test_the_words_of_a_few_long_recordings_are_found_by_the_index(user):
    add(user, "long", title="Standup")
    with CaptureQueriesContext(connection) as queries_of_search:
        assert found(user, "standup") == ["long"]
    with connection.cursor() as cursor:
        for query in queries_of_search:
            if "recording_searchterms" in query["sql"]:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plan = "\n".join(line for (line,) in cursor.fetchall())
                assert "Bitmap Index Scan on recording_search_terms" in plan
                assert "Seq Scan on recording_searchterms" not in plan


@given(
    texts=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4), query=TEXTS
)
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_the_same_recordings_as_by_reading_all(user, texts, query):
    Recording.objects.all().delete()
    for number, (title, note, spoken) in enumerate(texts):
        add(
            user,
            str(number),
            title=title,
            summaries=[summary(note)],
            transcript=transcript("", [SEGMENTS[0] | {"text": spoken}]),
        )
    try:
        pages.phrases_of(query)
    except SearchQueryError:
        return
    expected = {str(number) for number, each in enumerate(texts) if has(each, query)}
    assert set(found(user, query, limit=1)) == expected
