"""Search: all words, in any letter case, newest first, in one account alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recording.library import search
from recording.library.search import folded, snippet, words_of
from tests.factories import UserFactory
from tests.recording.conftest import imported
from webhooks_core.errors import BadRequestError

SEGMENTS = [
    {"speaker": "Ada", "start": 0, "end": 2.5, "text": "We visit the old harbour."},
    {"speaker": "Ben", "start": 3, "end": 5, "text": "The budget is small."},
]


def ids(account: Any, query: str, **options: Any) -> list[str]:
    return [hit.audio_id for hit in search.search(account, query, **options).hits]


def test_every_word_must_stand_somewhere_in_the_recording(user):
    imported(user, "a", title="Harbour", transcript={"text": "The budget is small."})
    imported(user, "b", title="Harbour")
    assert ids(user, "harbour") == ["b", "a"]
    assert ids(user, "harbour BUDGET") == ["a"]
    assert ids(user, "harbour ship") == []
    assert ids(user, '"budget is small"') == ["a"]
    assert ids(user, '"small budget"') == []


def test_the_newest_comes_first_and_a_period_limits(user):
    for day in (3, 1, 2):
        imported(user, f"a{day}", title="x", recorded_at=f"2026-11-0{day}T09:00:00Z")
    assert ids(user, "x") == ["a3", "a2", "a1"]
    since, until = (datetime(2026, 11, day, tzinfo=UTC) for day in (2, 3))
    assert ids(user, "x", since=since, until=until) == ["a2"]


def test_a_hit_is_the_text_with_most_of_the_words(user):
    text = " ".join(str(each["text"]) for each in SEGMENTS)
    transcript = {"text": text, "segments": SEGMENTS}
    imported(user, "a", title="The budget", transcript=transcript)
    [hit] = search.search(user, "old harbour budget").hits
    assert (hit.field, hit.speaker, hit.start_s) == ("transcript", None, None)
    [hit] = search.search(user, "harbour").hits
    assert (hit.field, hit.speaker) == ("transcript", "Ada")
    assert (hit.start_s, hit.end_s) == (0, 2.5)
    assert hit.snippet == "We visit the old harbour."
    [hit] = search.search(user, "budget").hits
    assert (hit.field, hit.title) == ("title", "The budget")


def test_html_is_searched_as_text(user):
    summary = {"label": "x", "format": "html", "content": "<b class=hidden>bold</b>"}
    imported(user, "a", summaries=[summary])
    assert ids(user, "bold") == ["a"]
    assert ids(user, "hidden") == []


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("STRASSE", "straße"),
        ("Straße", "STRASSE"),
        ("İstanbul", "i̇stanbul"),
        ("\uff21\uff22\uff11", "ab1"),
        ("a\n  b", '"a b"'),
        ("a\0b", '"a b"'),
        ("港に船が着く", "船が"),
        ("100 % off_", "100 % off_"),
        ("it's \\ here", "it's \\"),
    ],
)
def test_case_width_and_scripts(user, text, query):
    imported(user, "a", transcript={"text": f"vor {text} nach"})
    assert ids(user, query) == ["a"]


@pytest.mark.parametrize("query", ["ab%", "a_c", "a*c", ".", "xabc"])
def test_what_is_not_there_is_not_found(user, query):
    imported(user, "a", title="abc")
    assert ids(user, query) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (" ", "no word"),
        ('""', "no word"),
        ("x" * 1001, "longer than 1000"),
        ("ﷺ" * 1000, "longer than 1000"),
        (" ".join(map(str, range(33))), "more than 32"),
    ],
)
def test_what_cannot_be_searched_is_told(query, message):
    with pytest.raises(BadRequestError, match=message):
        words_of(query)


def test_accounts_see_only_their_own(user):
    other = UserFactory.create(username="eve")
    imported(user, "a", title="harbour")
    page = search.search(user, "harbour", limit=1)
    assert ids(other, "harbour") == []
    assert ids(other, "harbour", cursor=page.next_cursor) == []


def test_a_replaced_text_is_found_no_more(user):
    imported(user, "a", title="harbour")
    imported(user, "a", title="budget")
    assert (ids(user, "harbour"), ids(user, "budget")) == ([], ["a"])


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("at_once", [1, 2, 25])
def test_pages_are_the_whole_in_order(user, monkeypatch, limit, at_once):
    monkeypatch.setattr(search, "AT_ONCE", at_once)
    for number in range(7):
        imported(user, f"a{number}", title="x" if number % 3 else "y")
    found, cursor = [], None
    for _ in range(20):
        page = search.search(user, "x", limit=limit, cursor=cursor)
        found += [hit.audio_id for hit in page.hits]
        assert len(page.hits) <= limit
        if (cursor := page.next_cursor) is None:
            break
    assert found == ["a5", "a4", "a2", "a1"]


def test_a_page_ends_with_its_time_and_the_next_goes_on(user, monkeypatch):
    monkeypatch.setattr(search, "DEADLINE_S", -1)
    monkeypatch.setattr(search, "AT_ONCE", 1)
    for number in range(3):
        imported(user, f"a{number}", title="x")
    page = search.search(user, "x")
    assert [hit.audio_id for hit in page.hits] == ["a2"]
    assert ids(user, "x", cursor=page.next_cursor) == ["a1"]


@given(query=st.text("ab\"' %_\0\u0130", min_size=1, max_size=40))
def test_any_query_with_a_word_is_folded(query):
    assert all(folded(word) == word for word in words_of(f"a {query}"))


def test_a_snippet_is_one_line_around_the_first_match():
    text = "word " * 100 + "needle\n\nin a " + "haystack " * 100
    shown = snippet(text, ["needle"])
    assert shown.startswith("… word ")
    assert "needle in a haystack" in shown
    assert shown.endswith(" …")
    assert len(shown) <= 250
    assert snippet("Needle", ["needle"]) == "Needle"
