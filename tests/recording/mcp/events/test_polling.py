"""`events/poll`: every event once and in order, whatever the sizes of the pages."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain

import jsonschema
import pytest
from cryptography.fernet import Fernet
from django.utils import timezone

from recording.mcp.events import occurrences, polling
from recording.mcp.events.cursors import Position
from tests.recording.mcp.conftest import store
from tests.recording.mcp.events.conftest import EVENT, EventsClient
from webhooks_core import secrets
from webhooks_core.models import Event


def ids(page):
    return [event["data"]["audio_id"] for event in page["events"]]


def drain(events, cursor, **params):
    """Return the ids behind a cursor, page by page."""
    pages = []
    while True:
        page = events.poll(cursor, **params)
        pages.append(ids(page))
        cursor = page["cursor"]
        if not page["hasMore"]:
            return pages


@pytest.mark.spec(
    "mcp-events",
    "a null cursor means start from now: no events and a fresh cursor",
    "an absent cursor is a null cursor",
    "nextPollMs",
)
def test_without_a_cursor_it_starts_now(events):
    store(events.api)
    for page in (events.poll(None), events.do("poll", name=EVENT)):
        assert page["events"] == []
        assert (page["truncated"], page["hasMore"]) == (False, False)
        assert page["nextPollMs"] == 30_000
        assert page["resultType"] == "complete"
    audio_id = store(events.api)
    assert ids(events.poll(page["cursor"])) == [audio_id]


@pytest.mark.spec(
    "mcp-events",
    "eventId, name, timestamp, data",
    "eventId is stable across every way to the event",
    "data conforms to payloadSchema",
)
def test_an_occurrence_is_the_stored_event(events):
    cursor = events.poll()["cursor"]
    store(events.api)
    [occurrence] = events.poll(cursor)["events"]
    assert set(occurrence) == {"eventId", "name", "timestamp", "data"}
    stored = Event.objects.get()
    assert (occurrence["eventId"], occurrence["name"]) == (stored.public_id, EVENT)
    [item] = events.do("list")["events"]
    jsonschema.validate(occurrence["data"], item["payloadSchema"])
    assert events.poll(cursor)["events"] == [occurrence]


@pytest.mark.spec(
    "mcp-events",
    "maxEvents caps a batch; hasMore and an intermediate cursor",
    "poll: in the order of production",
)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_pages_hold_each_event_once_and_in_order(events, most):
    cursor = events.poll()["cursor"]
    stored = [store(events.api) for _ in range(5)]
    pages = drain(events, cursor, maxEvents=most)
    assert list(chain.from_iterable(pages)) == stored
    assert all(len(page) == most for page in pages[:-1])


def test_filters_choose_and_the_cursor_passes_what_they_leave_out(events):
    cursor = events.poll()["cursor"]
    wanted = store(events.api, title="Harbour")
    store(events.api, title="Other")
    page = events.poll(cursor, arguments={"title_contains": "harbour"}, maxEvents=1)
    assert (ids(page), page["hasMore"]) == ([wanted], False)
    assert events.poll(page["cursor"])["events"] == []


def test_one_request_reads_a_bounded_part(events, monkeypatch):
    monkeypatch.setattr(occurrences, "MAX_READ_BYTES", 1)
    cursor = events.poll()["cursor"]
    stored = [store(events.api) for _ in range(3)]
    assert drain(events, cursor) == [[audio_id] for audio_id in stored]
    monkeypatch.setattr(occurrences, "MAX_SCANNED", 2)
    monkeypatch.setattr(occurrences, "MAX_READ_BYTES", 10**9)
    assert drain(events, cursor) == [stored[:2], stored[2:]]
    monkeypatch.setattr(polling, "MAX_ANSWER_BYTES", 1)
    assert drain(events, cursor) == [[audio_id] for audio_id in stored]


@pytest.mark.spec("mcp-events", "an empty result advances the cursor")
def test_a_quiet_time_does_not_age_the_cursor(events):
    before = timezone.now()
    page = events.poll(events.poll()["cursor"])
    position = Position.read(page["cursor"], account=events.api.user.pk)
    assert position.at >= before - timedelta(milliseconds=1)


def aged(events, days, event=0):
    at = timezone.now() - timedelta(days=days)
    return Position(events.api.user.pk, event, at).cursor()


@pytest.mark.spec("mcp-events", "a cursor outside retention: truncated, never an error")
def test_a_cursor_older_than_the_retention_is_truncated(events):
    audio_id = store(events.api)
    page = events.poll(aged(events, days=4000))
    assert (ids(page), page["truncated"]) == ([audio_id], True)
    assert events.poll(page["cursor"])["truncated"] is False
    assert events.poll(aged(events, days=1))["truncated"] is False


@pytest.mark.spec(
    "mcp-events",
    "maxAgeMs: the later of cursor and floor; truncated",
    "maxAgeMs is ignored with a null cursor",
)
def test_max_age_skips_what_is_older_and_says_so(events):
    store(events.api)
    Event.objects.update(created_at=timezone.now() - timedelta(hours=2))
    audio_id = store(events.api)
    cursor = aged(events, days=1)
    hour = 3_600_000
    page = events.poll(cursor, maxAgeMs=hour)
    assert (ids(page), page["truncated"]) == ([audio_id], True)
    page = events.poll(cursor, maxAgeMs=48 * hour)
    assert (len(page["events"]), page["truncated"]) == (2, False)
    assert len(events.poll(cursor, maxAgeMs=10**18)["events"]) == 2
    page = events.poll(None, maxAgeMs=1)
    assert (page["events"], page["truncated"]) == ([], False)


def test_a_cursor_that_is_not_ours_is_refused(events, stranger):
    theirs = EventsClient(stranger).poll()["cursor"]
    ours = events.poll()["cursor"]
    secret = secrets.seal("whsec_x")
    for cursor in (
        theirs,
        "x",
        "",
        ours[:-2],
        ours[:9] + "AAAA" + ours[13:],
        "ü",
        "x" * 1000,
        secret,
    ):
        error = events.refused("poll", name=EVENT, cursor=cursor)
        assert error["code"] == -32602
        assert "Send null" in error["message"]


def test_a_cursor_shows_nothing_of_other_accounts(events):
    cursor = events.poll()["cursor"]
    assert str(events.api.user.pk) not in cursor.split(".")
    assert cursor != events.poll()["cursor"]


@pytest.mark.parametrize(
    "params",
    [
        {"maxEvents": 0},
        {"maxEvents": "1"},
        {"maxAgeMs": -1},
        {"maxAgeMs": 1.5},
        {"cursor": 5},
        {"arguments": None},
        {"arguments": []},
        {"name": 5},
        {"name": "x" * 129},
    ],
)
def test_wrong_parameters_are_named(events, params):
    error = events.refused("poll", **{"name": EVENT} | params)
    assert error["code"] == -32602
    assert next(iter(params)) in error["message"]


def test_another_accounts_events_are_not_there(events, stranger):
    cursor = events.poll()["cursor"]
    store(stranger)
    assert events.poll(cursor)["events"] == []


def test_a_cursor_outlives_a_rotation_of_the_keys(events, settings):
    cursor, new = events.poll()["cursor"], Fernet.generate_key().decode()
    settings.WEBHOOK_SECRET_KEYS = [new, *settings.WEBHOOK_SECRET_KEYS]
    assert events.poll(cursor)
    settings.WEBHOOK_SECRET_KEYS = [new]
    assert events.refused("poll", name=EVENT, cursor=cursor)["code"] == -32602
