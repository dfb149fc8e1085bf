"""Importing recordings, and what is published when."""

import io
import sys

import orjson
import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from recording.library import event_data
from recording.models import Recording
from recording.webhooks import SUMMARY_COMPLETED_SAMPLE
from tests.recording.conftest import imported
from tests.threads import at_once
from webhooks_core import publishing
from webhooks_core.models import Delivery, Event

pytestmark = pytest.mark.django_db

SUMMARY = {"label": "Notes", "content": "# x", "format": "markdown"}
NOTES = {"summaries": [SUMMARY]}


def data_of(event):
    return orjson.loads(event.body)["data"]


@pytest.mark.spec("recording", "the first import publishes whatever fields are there")
@pytest.mark.spec("recording", "summary.completed fires when a summary is ready")
def test_the_first_import_publishes(user):
    result = imported(user)
    assert result.is_new
    event = Event.objects.get()
    assert (event.owner, event.type) == (str(user.pk), "summary.completed")
    assert data_of(event) == {"audio_id": "aud_1"}
    assert result.event == event


@pytest.mark.spec("recording", "HTML summaries are normally converted to Markdown")
def test_the_payload_is_the_recording_with_html_converted(user):
    html = SUMMARY | {"content": "<h1>x</h1>", "format": "html"}
    content = {"audio_id": "aud_1", "status": 3, "summaries": [html]}
    result = imported(user, **content)
    assert data_of(result.event) == content | {
        "summaries": [SUMMARY | {"content": "# x\n"}]
    }
    assert result.recording.content == content


@pytest.mark.spec(
    "recording", "a later import publishes when summaries or report_id change"
)
@pytest.mark.parametrize(
    ("_case", "before", "after", "publishes"),
    [
        ("nothing changed", {}, {}, False),
        ("only the title", {"title": "a"}, {"title": "b"}, False),
        ("only the transcript", {}, {"transcript": {"text": "x"}}, False),
        ("only the status", {"status": 1}, {"status": 2}, False),
        ("the summaries came", {}, NOTES, True),
        ("the summaries went", NOTES, {}, True),
        ("the same summaries", NOTES, NOTES, False),
        ("another summary", NOTES, {"summaries": [SUMMARY | {"label": "B"}]}, True),
        ("the report came", {}, {"report_id": "rep_1"}, True),
        ("another report", {"report_id": "rep_1"}, {"report_id": "rep_2"}, True),
    ],
)
def test_a_later_import_replaces_the_recording(user, _case, before, after, publishes):
    imported(user, **before)
    result = imported(user, **after)
    assert not result.is_new
    assert Recording.objects.get().content == {"audio_id": "aud_1", **after}
    assert (result.event is not None) is publishes
    assert Event.objects.count() == 1 + publishes


def test_recordings_of_two_accounts_do_not_touch(user, stranger):
    imported(user, title="mine")
    imported(stranger.user, title="theirs")
    assert Recording.objects.get(account=user).content["title"] == "mine"


def test_an_import_reaches_the_account_s_subscribers_alone(api, stranger):
    api.create()
    stranger.create()
    imported(api.user)
    assert Delivery.objects.get().endpoint.owner == api.owner


@pytest.mark.spec("recording", "in the same transaction")
def test_when_publishing_fails_nothing_is_stored(user, monkeypatch):
    def fail(**_):
        raise OperationalError("gone")

    monkeypatch.setattr(publishing, "publish", fail)
    with pytest.raises(OperationalError):
        imported(user)
    assert not Recording.objects.exists()


@pytest.mark.spec("recording", "texts are kept to the letter, NUL and numbers too")
def test_the_document_survives_the_database_to_the_letter(user):
    text = "a\0b\u2028\r\n\t 🎙 \ufeff e\u0301"
    content = {
        "audio_id": "aud_1",
        "title": text,
        "transcript": {
            "text": text,
            "segments": [{"speaker": "", "start": 1e-9, "end": 0.1, "text": text}],
        },
    }
    imported(user, **content)
    assert Recording.objects.get().content == content


def test_a_long_transcript_is_trimmed_in_the_event_and_whole_in_the_store(user):
    segment = {"speaker": "Ada", "start": 0, "end": 1, "text": "語" * 100}
    transcript = {"text": "語" * 400_000, "segments": [segment] * 300}
    result = imported(user, transcript=transcript)
    assert event_data.TARGET - 6 < result.event.size <= event_data.TARGET
    assert data_of(result.event)["transcript"]["truncated"] is True
    assert Recording.objects.get().content["transcript"] == transcript


@pytest.mark.django_db(transaction=True)
def test_of_two_first_imports_at_once_one_is_the_first(user):
    def run():
        return imported(user).is_new

    results = at_once(4, run)
    assert sorted(results) == [False, False, False, True]
    assert Event.objects.count() == Recording.objects.count() == 1


# ── The command ─────────────────────────────────────────────────────────────────────


def run(*args: str):
    out, err = io.StringIO(), io.StringIO()
    call_command("import_recording", *args, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "recording.json"
    path.write_bytes(orjson.dumps(SUMMARY_COMPLETED_SAMPLE))
    return path


@pytest.mark.spec("recording", "import_recording FILE.json --account USER [--no-event]")
def test_the_command_prints_what_it_did(user, file):
    out, err = run(str(file), "--account", "ada")
    assert out == f"imported aud_2481: {Event.objects.get().public_id}\n"
    assert err == ""
    assert run(str(file), "--account", "ada")[0] == "updated aud_2481: no event\n"


@pytest.mark.spec("recording", "--no-event only stores")
def test_the_command_stores_without_an_event_on_request(user, file):
    out, _ = run(str(file), "--account", "ada", "--no-event")
    assert out == "imported aud_2481: no event\n"
    assert Recording.objects.count() == 1
    assert not Event.objects.exists()


def test_the_command_reads_standard_input(user, file, monkeypatch):
    with file.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert run("-", "--account", "ada")[0].startswith("imported aud_2481")


def test_the_command_names_the_fields_that_it_ignored(user, file):
    file.write_bytes(b'{"audio_id": "a", "colour": 1}')
    _, err = run(str(file), "--account", "ada")
    assert err == "ignored unknown fields: colour\n"


@pytest.mark.parametrize(
    ("_case", "content", "words"),
    [
        ("not JSON", b'{\n"audio_id": nope}', "line 2, column 13: not JSON"),
        ("a field", b'{\n"audio_id": 5}', "audio_id must be a"),
    ],
)
def test_the_command_names_file_line_and_field(user, file, _case, content, words):
    file.write_bytes(content)
    with pytest.raises(CommandError) as caught:
        run(str(file), "--account", "ada")
    assert str(caught.value).startswith(f"{file}: {words}")
    assert str(caught.value).endswith("; nothing was stored")
    assert not Recording.objects.exists()


def test_the_command_imports_a_sample_each_time_with_a_new_id(user):
    for _ in range(2):
        assert run("--sample", "--account", "ada")[0].startswith("imported aud_")
    assert (Recording.objects.count(), Event.objects.count()) == (2, 2)


@pytest.mark.parametrize("arguments", [[], ["FILE", "--sample"]])
def test_the_command_takes_one_source(user, arguments):
    with pytest.raises(CommandError, match="argument"):
        run(*arguments, "--account", "ada")


def test_the_command_refuses_files_and_users_that_are_not_there(user, file, tmp_path):
    for path in (tmp_path / "none.json", tmp_path, "a\0b"):
        with pytest.raises(CommandError, match=str(path).replace("\0", "\0")):
            run(str(path), "--account", "ada")
    with pytest.raises(CommandError, match="no user named 'bob'"):
        run(str(file), "--account", "bob")
