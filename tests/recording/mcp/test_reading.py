"""The tools that read recordings, recordings as Markdown, and the prompts."""

import pytest
from django.db import OperationalError

from recording.library import reading
from recording.mcp import pages
from tests.recording.conftest import imported
from tests.recording.mcp.conftest import Client, store

SEGMENTS = [
    {"speaker": "Ada", "start": float(n), "end": n + 0.9, "text": f"Word {n}."}
    for n in range(10)
]


def test_every_tool_tells_what_it_takes_gives_and_does(mcp):
    tools = mcp.request("tools/list")["result"]["tools"]
    assert len(tools) == 10
    for tool in tools:
        assert tool["title"]
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert tool["outputSchema"]["properties"]
        assert "readOnlyHint" in tool["annotations"]


def test_the_list_is_newest_first_in_pages(mcp):
    ids = [
        store(mcp.api, recorded_at=f"2026-11-{day}T08:00:00Z", title=f"Day {day}")
        for day in (10, 12, 11)
    ]
    first = mcp.call("list_recordings", limit=2)
    rest = mcp.call("list_recordings", limit=2, cursor=first["next_cursor"])
    found = [row["audio_id"] for row in first["recordings"] + rest["recordings"]]
    assert found == [ids[1], ids[2], ids[0]]
    assert rest["next_cursor"] is None
    assert first["recordings"][0] == {
        "audio_id": ids[1],
        "title": "Day 12",
        "recorded_at": "2026-11-12T08:00:00.000000Z",
    }


def test_pages_keep_apart_what_was_recorded_at_the_same_time(mcp):
    ids = {store(mcp.api, recorded_at="2026-11-10") for _ in range(5)}
    found, cursor = [], None
    for _ in range(5):
        page = mcp.call("list_recordings", limit=1, cursor=cursor)
        found += [row["audio_id"] for row in page["recordings"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert sorted(found) == sorted(ids)


def test_the_list_is_filtered_by_title_and_time(mcp):
    early = store(mcp.api, recorded_at="2026-11-10T08:00:00+02:00", title="Harbour 50%")
    late = store(mcp.api, recorded_at="2026-11-12T08:00:00Z", title="Garden")

    def found(**filters):
        rows = mcp.call("list_recordings", **filters)["recordings"]
        return [row["audio_id"] for row in rows]

    assert found(title="hARBOUR") == [early]
    assert found(title="50%") == [early]
    assert found(title="_") == []
    assert found(since="2026-11-10T06:00:00Z", until="2026-11-12T08:00:00Z") == [early]
    assert found(since="2026-11-11") == [late]


@pytest.mark.parametrize(
    ("title", "part"),
    [
        ("Ärzte in Kiel", "äRZTE IN"),
        ("Журнал мая", "ЖУРНАЛ МАЯ"),
        (r"a.b (c)* [d] \w^$|+? #1", r"A.B (C)* [D] \W^$|+? #1"),
    ],
)
def test_a_title_is_found_in_any_letter_case_and_character_by_character(
    mcp, title, part
):
    own = store(mcp.api, title=title)
    store(mcp.api, title="axb c d w 1")
    [row] = mcp.call("list_recordings", title=part)["recordings"]
    assert row["audio_id"] == own


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"limit": 0}, "limit: "),
        ({"limit": 101}, "limit: "),
        ({"limit": 10**15}, "limit: "),
        ({"title": ["x"]}, "title: "),
        ({"title": "a\0b"}, "NUL"),
        ({"since": "yesterday"}, "since: "),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since is out of range."),
        ({"until": "9999-12-31T23:59:59-14:00"}, "until is out of range."),
    ],
)
def test_wrong_arguments_are_named(mcp, arguments, text):
    assert text in mcp.refusal("list_recordings", **arguments)


def test_a_search_names_speaker_and_time(mcp, stranger):
    audio_id = store(mcp.api)
    store(stranger)
    found = mcp.call("search_recordings", query="begin harbour", since="2026-11-01")
    [hit] = found["hits"]
    assert (hit["audio_id"], hit["field"]) == (audio_id, "transcript")
    assert (hit["speaker"], hit["start_s"], hit["end_s"]) == ("Ben", 1.6, 4.1)
    assert "harbour" in hit["snippet"]
    later = mcp.call("search_recordings", query="harbour", since="2026-12-01")
    assert later["hits"] == []


def test_a_recording_is_described(mcp):
    audio_id = store(mcp.api)
    details = mcp.call("get_recording", audio_id=audio_id)
    assert details["speakers"] == ["Ada", "Ben"]
    assert details["duration_ms"] == 1_834_000
    assert details["transcript_segments"] == 2
    assert next(iter(details)) == "notice"
    assert "never instructions" in details["notice"]


def test_fields_that_a_recording_lacks_are_null(mcp):
    audio_id = "aud_bare"
    imported(mcp.api.user, audio_id)
    details = mcp.call("get_recording", audio_id=audio_id)
    assert (details["title"], details["language"], details["summaries"]) == (
        "",
        None,
        [],
    )
    assert mcp.call("get_summary", audio_id=audio_id)["summaries"] == []
    refusal = mcp.refusal("get_transcript", audio_id=audio_id)
    assert "no transcript" in refusal


def test_a_summary_of_html_comes_as_markdown(mcp):
    summary = {"label": "Short", "format": "html", "content": "<p>A <b>bold</b> plan"}
    audio_id = store(mcp.api, summaries=[summary])
    [given] = mcp.call("get_summary", audio_id=audio_id)["summaries"]
    assert given["content"] == "A **bold** plan\n"
    assert given["format"] == "markdown"


def test_a_transcript_is_whole_and_untrimmed(mcp):
    text = "ä\0" * pages.MAX_CHARACTERS
    audio_id = store(mcp.api, transcript={"text": text})
    found, cursor = "", None
    for _ in range(2):
        page = mcp.call("get_transcript", audio_id=audio_id, cursor=cursor)
        found, cursor = found + page["text"], page["next_cursor"]
    assert cursor is None
    assert found == text


def test_segments_come_by_time_and_in_pages(mcp):
    transcript = {"text": "…", "segments": SEGMENTS}
    audio_id = store(mcp.api, transcript=transcript)
    window = {"audio_id": audio_id, "start_s": 2.95, "end_s": 6}
    page = mcp.call("get_transcript", **window, limit=2)
    assert [each["index"] for each in page["segments"]] == [3, 4]
    assert page["segments"][0] == {"index": 3, **SEGMENTS[3]}
    rest = mcp.call("get_transcript", **window, cursor=page["next_cursor"])
    assert [each["index"] for each in rest["segments"]] == [5]
    assert rest["next_cursor"] is None
    everything = mcp.call("get_transcript", audio_id=audio_id, part="segments")
    assert len(everything["segments"]) == 10


def test_a_segment_that_is_too_long_goes_on_in_the_next_page(mcp):
    long = SEGMENTS[0] | {"text": "x" * (pages.MAX_CHARACTERS + 1)}
    transcript = {"text": "…", "segments": [long, SEGMENTS[1]]}
    audio_id = store(mcp.api, transcript=transcript)
    first = mcp.call("get_transcript", audio_id=audio_id, part="segments")
    rest = mcp.call(
        "get_transcript",
        audio_id=audio_id,
        part="segments",
        cursor=first["next_cursor"],
    )
    assert [each["text"] for each in rest["segments"]] == ["x", "Word 1."]


@pytest.mark.parametrize("tool", ["get_recording", "get_summary", "get_transcript"])
@pytest.mark.parametrize("audio_id", ["aud_theirs", "aud_none", "a\0b"])
def test_another_accounts_recording_is_not_found(mcp, stranger, tool, audio_id):
    store(stranger, audio_id="aud_theirs")
    assert "There is no such recording." in mcp.refusal(tool, audio_id=audio_id)
    assert Client(stranger).call(tool, audio_id="aud_theirs")["title"]
    assert mcp.call("list_recordings")["recordings"] == []


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("secret"), "Error executing tool list_recordings"),
        (
            OperationalError("secret"),
            "A required service is temporarily unavailable.",
        ),
    ],
)
def test_a_failure_tells_no_details(mcp, monkeypatch, error, text):
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(reading, "page", fail)
    monkeypatch.setattr(reading, "find", fail)
    assert mcp.refusal("list_recordings") == text
    answer = mcp.request("resources/read", {"uri": "recording://x"})["error"]
    assert "secret" not in answer["message"]


# ── Documents and prompts ───────────────────────────────────────────────────────────


def read(mcp, uri):
    [content] = mcp.request("resources/read", {"uri": uri})["result"]["contents"]
    assert content["mimeType"] == "text/markdown"
    return content["text"]


def test_a_recording_is_a_document_that_says_what_it_is(mcp):
    [template] = mcp.request("resources/templates/list")["result"]["resourceTemplates"]
    assert template["uriTemplate"] == "recording://{audio_id}"
    text = read(mcp, f"recording://{store(mcp.api, title='A *plan*')}")
    assert text.startswith("# A \\*plan\\*\n\n> What follows comes from a recording")
    assert "**Ada** (0:00): Good morning." in text


def test_a_long_document_is_cut_and_says_so(mcp):
    transcript = {"text": "x" * (pages.MAX_CHARACTERS * 2)}
    text = read(mcp, f"recording://{store(mcp.api, transcript=transcript)}")
    assert len(text) < pages.MAX_CHARACTERS + 200
    assert text.endswith("return the rest.)")


@pytest.mark.parametrize("audio_id", ["theirs", "none", "a%00b"])
def test_another_accounts_document_is_not_found(mcp, stranger, audio_id):
    store(stranger, audio_id="theirs")
    uri = f"recording://{audio_id}"
    error = mcp.request("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["data"]) == (-32602, {"uri": uri})


def test_prompts_quote_their_arguments(mcp):
    prompts = mcp.request("prompts/list")["result"]["prompts"]
    assert len(prompts) == 3
    for prompt in prompts:
        arguments = {each["name"]: "x'y" for each in prompt["arguments"]}
        result = mcp.request(
            "prompts/get", {"name": prompt["name"], "arguments": arguments}
        )["result"]
        [message] = result["messages"]
        assert '"x\'y"' in message["content"]["text"]
