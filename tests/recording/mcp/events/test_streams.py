"""`events/stream` and `events/subscribe` through the web server's bridge, on its event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from datetime import timedelta
from typing import Any

import orjson
import pytest
import requests
from django.utils import timezone

from config.wsgi import application
from recording.mcp.events import clients, polling, streams
from recording.mcp.events.arguments import Arguments
from recording.mcp.events.cursors import Position
from recording.mcp.events.occurrences import Subject
from recording.models import PersonalToken
from tests.config.serving.test_server import bridged
from tests.recording.mcp.conftest import ACCEPT, STATELESS, store
from tests.recording.mcp.events.callback import callback
from tests.recording.mcp.events.conftest import EVENT, EventsClient
from tests.running import PATIENCE_S, until
from webhooks_core.models import Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(streams, "LOOK_S", 0.02)


@pytest.fixture
def url() -> Iterator[str]:
    with bridged(application, threads=1) as url:
        yield url


class Messages:
    """The messages of one stream."""

    def __init__(self, response: Any, message_id: int) -> None:
        self.response, self.id = response, message_id
        self._lines = response.iter_lines()

    def next(self) -> dict[str, Any]:
        for line in self._lines:
            if line.startswith(b"data: "):
                message: dict[str, Any] = orjson.loads(line[6:])
                return message
        raise AssertionError("the stream has ended")

    def notification(self, name: str) -> dict[str, Any]:
        message = self.next()
        assert message["method"] == f"notifications/events/{name}", message
        params: dict[str, Any] = message["params"]
        meta = {"io.modelcontextprotocol/subscriptionId": self.id}
        assert params.pop("_meta") == meta
        return params

    def rest(self) -> list[dict[str, Any]]:
        return [orjson.loads(x[6:]) for x in self._lines if x.startswith(b"data: ")]


def post(url: str, client: EventsClient, method: str, **params: Any) -> Any:
    message = client.message(f"events/{method}", params)
    headers = {
        "Accept": ACCEPT,
        "Authorization": f"Bearer {client.api.token}",
        "MCP-Protocol-Version": STATELESS,
        "Mcp-Method": f"events/{method}",
        "Content-Type": "application/json",
    }
    body = orjson.dumps(message)
    return message["id"], requests.post(
        f"{url}/mcp", body, headers=headers, stream=True, timeout=PATIENCE_S
    )


@contextmanager
def streaming(url: str, client: EventsClient, **params: Any) -> Iterator[Messages]:
    message_id, response = post(url, client, "stream", **{"name": EVENT} | params)
    with response:
        assert response.status_code == 200, response.content
        yield Messages(response, message_id)


@pytest.mark.spec(
    "mcp-events",
    "events/stream: active first, every message names its subscription",
    "each event on a stream carries the position behind it",
    "push: in the order of production",
)
def test_events_come_as_they_are_published(events, url):
    with streaming(url, events) as messages:
        assert messages.response.headers["Content-Type"] == "text/event-stream"
        assert "Content-Length" not in messages.response.headers
        active = messages.notification("active")
        assert active["truncated"] is False
        stored = [store(events.api) for _ in range(3)]
        seen = [messages.notification("event") for _ in range(3)]
    assert [each["data"]["audio_id"] for each in seen] == stored
    assert [*seen[0]] == ["eventId", "name", "timestamp", "data", "cursor"]
    polled = events.poll(active["cursor"])["events"]
    assert [each["eventId"] for each in polled] == [each["eventId"] for each in seen]
    rest = events.poll(seen[1]["cursor"])["events"]
    assert [each["eventId"] for each in rest] == [seen[2]["eventId"]]


@pytest.mark.spec(
    "mcp-events", "heartbeats carry the cursor, at least every 30 seconds"
)
def test_heartbeats(events, url, monkeypatch):
    assert streams.HEARTBEAT_S <= 30
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.05)
    with streaming(url, events, arguments={"label": "none"}) as messages:
        messages.notification("active")
        first = messages.notification("heartbeat")["cursor"]
        store(events.api)  # which does not match

        def position(cursor):
            return Position.read(cursor, account=events.api.user.pk).event

        last = first
        while position(last) == position(first):
            last = messages.notification("heartbeat")["cursor"]
    assert events.poll(last)["events"] == []


def test_a_stream_goes_on_where_another_ended(events, url):
    cursor = events.poll()["cursor"]
    stored = [store(events.api) for _ in range(2)]
    with streaming(url, events, cursor=cursor) as messages:
        assert messages.notification("active")["cursor"]
        seen = [messages.notification("event") for _ in range(2)]
    assert [each["data"]["audio_id"] for each in seen] == stored


@pytest.mark.spec("mcp-events", "maxAgeMs: the later of cursor and floor; truncated")
def test_max_age_skips_what_is_older_and_nothing_that_comes(events, url):
    cursor = events.poll()["cursor"]
    store(events.api)
    Event.objects.update(created_at=timezone.now() - timedelta(hours=2))
    with streaming(url, events, cursor=cursor, maxAgeMs=0) as messages:
        active = messages.notification("active")
        assert active["truncated"] is True
        stored = store(events.api)
        assert messages.notification("event")["data"]["audio_id"] == stored
    assert len(events.poll(active["cursor"])["events"]) == 1


@pytest.mark.spec("mcp-events", "a gap on a stream: active with truncated")
def test_an_old_cursor_is_truncated(events, url):
    at = timezone.now() - timedelta(days=4000)
    old = Position(events.api.user.pk, 0, at).cursor()
    with streaming(url, events, cursor=old) as messages:
        assert messages.notification("active")["truncated"] is True


@pytest.mark.spec(
    "mcp-events", "an invalid stream is a JSON-RPC error, and none is opened"
)
@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "no.such"}, -32023),
        ({"arguments": {"x": 1}}, -32602),
        ({"cursor": "x"}, -32602),
    ],
)
def test_a_wrong_stream_is_an_error(events, url, params, code):
    _, response = post(url, events, "stream", **{"name": EVENT} | params)
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()["error"]["code"] == code


@pytest.mark.spec("mcp-events", "a server ends a stream with StreamEventsResult")
def test_a_token_that_expires_ends_its_stream(events, url):
    with streaming(url, events) as messages:
        messages.notification("active")
        # Earlier tests may have left their loops, with hubs that are empty.
        [stream] = [each for hub in streams._hubs.values() for each in hub._streams]
        stream.client = stream.client._replace(expires_at=timezone.now())
        PersonalToken.objects.update(expires_at=timezone.now())
        [last] = messages.rest()
    meta = {"io.modelcontextprotocol/subscriptionId": messages.id}
    assert last == {
        "jsonrpc": "2.0",
        "id": messages.id,
        "result": {"resultType": "complete", "_meta": meta},
    }


@pytest.mark.spec("mcp-events", "a revoked client's stream ends with terminated")
@pytest.mark.parametrize("ending", ["token", "account"])
def test_a_revoked_token_terminates_its_stream(events, url, ending):
    with streaming(url, events) as messages:
        messages.notification("active")
        if ending == "token":
            PersonalToken.objects.revoke(timezone.now())
        else:
            type(events.api.user).objects.update(is_active=False)
        error = messages.notification("terminated")["error"]
        assert (error["code"], error["data"]) == (-32024, {"reason": "Access revoked"})
        [last] = messages.rest()
    assert "result" in last


def test_a_client_that_leaves_frees_its_place(events, url):
    with streaming(url, events) as messages:
        messages.notification("active")
        assert streams._open[events.api.user.pk] == 1
    store(events.api)
    until(lambda: not streams._open, "the stream is closed")


def test_an_account_has_so_many_streams(events, url, settings, stranger):
    settings.MCP_EVENTS_STREAMS = 1
    with streaming(url, events) as messages:
        messages.notification("active")
        _, response = post(url, events, "stream", name=EVENT)
        error = response.json()["error"]
        assert (error["code"], error["data"]) == (
            -32025,
            {"limit": "streams", "max": 1},
        )
        with streaming(url, EventsClient(stranger)) as other:
            other.notification("active")
            store(events.api)
            assert messages.notification("event")["name"] == EVENT


def test_a_stream_that_opens_while_the_server_stops_ends_at_once(events):
    account, now = events.api.user.pk, timezone.now()

    async def messages() -> list[Any]:
        client = clients.Client("token:1", "one", now, (clients.TOKEN, 1))
        subject = Subject(account, EVENT, Arguments.read({}))
        stream = streams.Stream(subject, Position(account, 0, now), client)
        streams.end_all()
        async with aclosing(streams.parts(stream, 7)) as parts:
            return [await anext(parts, None) for _ in range(3)]

    active, last, end = asyncio.run(messages())
    assert b"notifications/events/active" in active
    assert b'"resultType":"complete"' in last
    assert end is None


def test_streams_are_not_offered_where_the_settings_or_the_server_do_not(
    events, url, settings
):
    error = events.refused("stream", name=EVENT)  # plain WSGI
    assert (error["code"], error["data"]["value"]) == (-32026, "push")
    settings.MCP_EVENTS_STREAMS = 0
    _, response = post(url, events, "stream", name=EVENT)
    assert response.json()["error"]["code"] == -32026
    assert events.do("list")["events"][0]["delivery"] == ["webhook", "poll"]


def test_an_unreadable_database_is_an_error_that_passes(events, url, monkeypatch):
    read_page, faults = polling.read_page, ["broken: secret detail"]

    def fails_once(subject, position, **options):
        if faults:
            raise RuntimeError(faults.pop())
        return read_page(subject, position, **options)

    monkeypatch.setattr(polling, "read_page", fails_once)
    with streaming(url, events) as messages:
        messages.notification("active")
        error = messages.notification("error")["error"]
        assert error == streams.UNREADABLE
        audio_id = store(events.api)
        assert messages.notification("event")["data"]["audio_id"] == audio_id


def test_many_streams_occupy_no_thread(events, url):
    with streaming(url, events) as first, ExitStack() as stack:
        first.notification("active")
        before = threading.active_count()
        others = [stack.enter_context(streaming(url, events)) for _ in range(30)]
        for each in others:
            each.notification("active")
        # The thread of a call that has just ended may still be there.
        assert threading.active_count() < before + 5
        audio_id = store(events.api)
        for each in (first, *others):
            assert each.notification("event")["data"]["audio_id"] == audio_id


def test_the_loop_asks_a_receiver_while_the_thread_serves_others(events, url, stranger):
    with callback(is_open=False) as server:
        results: list[Any] = []

        def subscribe() -> None:
            params = {"name": EVENT, "delivery": server.delivery}
            results.append(post(url, events, "subscribe", **params)[1].json())

        waiting = threading.Thread(target=subscribe)
        waiting.start()
        until(lambda: server.requests, "the receiver is asked")
        # There is one thread, and it answers.
        _, response = post(url, EventsClient(stranger), "list")
        assert response.json()["result"]["events"]
        server.gate.set()
        waiting.join(PATIENCE_S)
    [answer] = results
    assert answer["result"]["id"].startswith("sub_")
    assert len(server.asked) == Endpoint.objects.count() == 1


def test_the_server_refuses_what_is_wrong_before_it_asks(events, url):
    with callback() as server:
        delivery = server.delivery | {"secret": "x"}
        _, response = post(url, events, "subscribe", name=EVENT, delivery=delivery)
        assert response.json()["error"]["code"] == -32602
        server.challenge = 404, b""
        params = {"name": EVENT, "delivery": server.delivery}
        _, response = post(url, events, "subscribe", **params)
        assert response.json()["error"]["data"] == {"reason": "http_4xx"}
    assert len(server.requests) == 1
