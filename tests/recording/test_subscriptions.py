from __future__ import annotations

import base64
import re
import socket
from copy import copy
from datetime import timedelta
from typing import Any

import orjson
import pytest
import time_machine
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from recording import subscriptions, webhooks
from recording.errors import NotFoundError
from tests.recording.conftest import OTHER_URL, URL, Api, at_once, error_of
from webhooks_core import profiles
from webhooks_core.models import Delivery, Endpoint, Event
from webhooks_core.publishing import publish

pytestmark = pytest.mark.django_db

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def ready(api, audio_id="aud_1"):
    return publish(
        profile="recording",
        owner=api.owner,
        event_type="summary.completed",
        data={"audio_id": audio_id},
    )


def disable(endpoint_id, failures=20):
    rows = Endpoint.objects.filter(public_id=endpoint_id)
    assert rows.update(status=2, consecutive_failures=failures) == 1


def item(api, endpoint_id):
    items = api.get("webhooks").json()["items"]
    return next(one for one in items if one["id"] == endpoint_id)


# ── Create ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "create response")
def test_create_answers_exactly_the_fields_of_the_spec(api):
    answer = api.post("webhooks", {"url": URL, "events": ["summary.completed"]})
    assert answer.status_code == 201
    body = answer.json()
    assert list(body) == ["endpoint_id", "secret", "url", "events", "status"]
    assert re.fullmatch(r"ep_[0-9a-v]{26}", body["endpoint_id"])
    assert (body["url"], body["events"], body["status"]) == (
        URL,
        ["summary.completed"],
        1,
    )
    prefix, secret = body["secret"][:6], body["secret"][6:]
    assert prefix == "whsec_"
    assert len(base64.b64decode(secret, validate=True)) == 32
    assert answer["Cache-Control"] == "no-store"


@pytest.mark.spec("recording", "the secret is returned only once, on creation")
def test_the_secret_is_nowhere_but_in_the_create_response(api):
    created = api.create()
    path = f"webhooks/{created['endpoint_id']}"
    answers = [
        api.get("webhooks"),
        api.patch(path, {}),
        api.get(f"{path}/deliveries"),
        api.post(f"{path}/test"),
    ]
    assert all(answer.status_code == 200 for answer in answers)
    assert not any(b"whsec_" in answer.content for answer in answers)


@pytest.mark.parametrize("body", [{"url": URL}, {"url": URL, "events": []}])
@pytest.mark.spec("recording", "empty or omitted events receives nothing")
def test_a_subscription_without_events_receives_nothing(api, body):
    assert api.post("webhooks", body).json()["events"] == []
    ready(api)
    assert not Delivery.objects.exists()


@pytest.mark.spec("recording", "events: duplicates collapse, order kept")
def test_events_are_kept_once_each_in_the_order_given(api):
    events = ["webhook.ping", "summary.completed", "webhook.ping"]
    assert api.create(events=events)["events"] == ["webhook.ping", "summary.completed"]


@pytest.mark.spec("recording", "webhook.ping is sent only through the test endpoint")
def test_a_listed_ping_is_never_sent_by_an_event(api):
    api.create(events=["webhook.ping"])
    publish(
        profile="recording", owner=api.owner, event_type="webhook.ping", data={"x": 1}
    )
    assert not Delivery.objects.exists()


def test_unknown_fields_are_ignored(api):
    body = {"url": URL, "events": [], "secret": "mine", "status": 2}
    created = api.post("webhooks", body).json()
    assert created["status"] == 1
    assert created["secret"] != "mine"


@pytest.mark.parametrize("url", ["http://localhost:9/x", "http://[::1]:9", URL])
def test_urls_that_are_accepted(api, url):
    assert api.create(url=url)["url"] == url


@pytest.mark.spec("recording", "url: HTTPS, publicly resolvable")
@pytest.mark.parametrize(
    ("_case", "url"),
    [
        ("plain http to a public host", "http://93.184.216.34/"),
        ("https to this machine", "https://localhost/"),
        ("a private address", "https://10.0.0.1/"),
        ("another loopback address", "http://127.0.0.2/"),
        ("the metadata service", "https://169.254.169.254/"),
        ("an address as a number", "https://2130706433/"),
        ("an IPv4 address in IPv6", "https://[::ffff:127.0.0.1]/"),
        ("a user name", "https://a@93.184.216.34/"),
        ("a user name and password", "http://a:b@127.0.0.1:9/"),
        ("a fragment", "https://93.184.216.34/#x"),
        ("an empty fragment", "https://93.184.216.34/#"),
        ("port 0", "https://93.184.216.34:0/"),
        ("another scheme", "ftp://93.184.216.34/"),
        ("no scheme", "93.184.216.34"),
        ("no host", "https:///x"),
        ("white space", "https://93.184.216.34/ x"),
        ("a line break", "https://93.184.216.34/\r\nX-Y: z"),
        ("NUL", "https://93.184.216.34/\0"),
        ("not ASCII", "https://93.184.216.34/ü"),
        ("too long", URL + "x" * 2048),
        ("our own listener", "http://127.0.0.1:8000/"),
        ("our own listener by name", "http://localhost:8000/v1/webhooks"),
    ],
)
def test_urls_that_are_refused(api, _case, url):
    error_of(api.post("webhooks", {"url": url}), 400, "bad_request")
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize(
    ("_case", "found", "status"),
    [
        ("no such name", socket.gaierror(socket.EAI_NONAME, "unknown"), 400),
        ("a private address", [(2, 1, 6, "", ("192.168.0.9", 0))], 400),
        ("a resolver that fails", socket.gaierror(socket.EAI_AGAIN, "later"), 201),
        ("a public address", [(2, 1, 6, "", ("93.184.216.34", 0))], 201),
    ],
)
@pytest.mark.spec("recording", "a definite no-such-name is refused at create")
def test_names_are_resolved_before_they_are_accepted(
    api, monkeypatch, _case, found, status
):
    def resolve(_host, _port, **_options):
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    answer = api.post("webhooks", {"url": "https://hooks.example.com/"})
    assert answer.status_code == status
    assert Endpoint.objects.count() == (status == 201)


def test_in_production_this_machine_is_refused():
    policy = webhooks.url_policy(base_url="https://signpost.example", local=False)
    for url in (
        "http://localhost:9/",
        "https://127.0.0.1/",
        "https://signpost.example",
    ):
        with pytest.raises(ValueError, match="url must"):
            policy.check(url)


# ── Quota ───────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "429 too_many_requests: subscription quota exceeded")
def test_the_sixth_subscription_is_refused_and_a_deletion_frees_its_place(api):
    ids = [api.create()["endpoint_id"] for _ in range(5)]
    message = error_of(api.post("webhooks", {"url": URL}), 429, "too_many_requests")
    assert "5" in message
    assert len(api.get("webhooks").json()["items"]) == 5
    assert api.delete(f"webhooks/{ids[2]}").json() == {"ok": True}
    assert api.create()["endpoint_id"] not in ids


@pytest.mark.spec("recording", "disabled endpoints count until deleted")
def test_disabled_subscriptions_count_towards_the_quota(api):
    for _ in range(5):
        disable(api.create()["endpoint_id"])
    error_of(api.post("webhooks", {"url": URL}), 429, "too_many_requests")


def test_the_quota_is_each_account_s_own(api, stranger):
    for _ in range(5):
        api.create()
    stranger.create()


def test_a_full_quota_is_told_after_the_faults_of_the_fields(api):
    for _ in range(5):
        api.create()
    error_of(api.post("webhooks", {"url": "nonsense"}), 400, "bad_request")


@pytest.mark.django_db(transaction=True)
@pytest.mark.spec("recording", "5 subscriptions per account")
def test_of_many_creations_at_once_only_five_succeed(api):
    def create():
        mine = copy(api)
        mine.client = Client()
        # SQLite in memory, unlike a file, does not wait for a lock: 503, come again.
        while (status := mine.post("webhooks", {"url": URL}).status_code) == 503:
            continue
        return status

    statuses = at_once(12, create)
    assert sorted(statuses) == [201] * 5 + [429] * 7
    assert Endpoint.objects.filter(owner=api.owner).count() == 5


# ── List ────────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "Subscription fields")
def test_the_list_shows_each_subscription_with_exactly_the_fields_of_the_spec(api):
    first, second = api.create(), api.create(url=OTHER_URL, events=[])
    answer = api.get("webhooks")
    assert answer.status_code == 200
    assert list(answer.json()) == ["items"]
    newest, oldest = answer.json()["items"]
    assert list(oldest) == [
        "id",
        "url",
        "events",
        "status",
        "consecutive_failures",
        "created_at",
        "updated_at",
    ]
    assert (newest["id"], oldest["id"]) == (second["endpoint_id"], first["endpoint_id"])
    assert (oldest["url"], oldest["events"]) == (URL, ["summary.completed"])
    assert (oldest["status"], oldest["consecutive_failures"]) == (1, 0)
    assert TIME.fullmatch(oldest["created_at"])
    assert TIME.fullmatch(oldest["updated_at"])


def test_an_account_without_subscriptions_has_an_empty_list(api):
    assert api.get("webhooks").json() == {"items": []}


def test_lists_show_only_the_account_s_own(api, stranger):
    api.create()
    assert stranger.get("webhooks").json() == {"items": []}


def test_the_list_costs_the_same_queries_however_long(api):
    counts = []
    for _ in range(2):
        api.create()
        with CaptureQueriesContext(connection) as queries:
            api.get("webhooks")
        counts.append(len(queries))
    assert counts[1] == 2  # the token and the list
    assert counts[0] <= 3  # the token's first use is noted once an hour


# ── Update ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "PATCH answers 200 {item: Subscription}")
def test_an_update_answers_the_subscription_as_lists_show_it(api):
    endpoint_id = api.create()["endpoint_id"]
    answer = api.patch(
        f"webhooks/{endpoint_id}", {"url": OTHER_URL, "events": ["webhook.ping"]}
    )
    assert answer.status_code == 200
    assert answer.json() == {"item": item(api, endpoint_id)}
    shown = answer.json()["item"]
    assert (shown["url"], shown["events"]) == (OTHER_URL, ["webhook.ping"])
    assert shown["updated_at"] > shown["created_at"]


@pytest.mark.parametrize(
    "body", [{}, {"url": OTHER_URL}, {"events": []}, {"url": "", "events": []}]
)
@pytest.mark.spec("recording", "PATCH rules 1 and 3: omitted or [] clears the events")
def test_omitted_or_empty_events_clear_the_list(api, body):
    endpoint_id = api.create()["endpoint_id"]
    answer = api.patch(f"webhooks/{endpoint_id}", body)
    assert answer.json()["item"]["events"] == []


@pytest.mark.parametrize(
    "body", [{"events": ["webhook.ping"]}, {"url": "", "events": ["webhook.ping"]}]
)
@pytest.mark.spec("recording", "PATCH rule 2: omitted or empty url keeps the url")
def test_an_omitted_or_empty_url_keeps_the_url(api, body):
    endpoint_id = api.create()["endpoint_id"]
    answer = api.patch(f"webhooks/{endpoint_id}", body)
    shown = answer.json()["item"]
    assert (shown["url"], shown["events"]) == (URL, ["webhook.ping"])


@pytest.mark.spec("recording", "PATCH rule 4: a new url re-enables and resets")
def test_a_new_url_re_enables_a_disabled_subscription(api):
    endpoint_id = api.create()["endpoint_id"]
    disable(endpoint_id)
    body = {"url": OTHER_URL, "events": ["summary.completed"]}
    shown = api.patch(f"webhooks/{endpoint_id}", body).json()["item"]
    assert (shown["status"], shown["consecutive_failures"]) == (1, 0)


@pytest.mark.parametrize(
    ("_case", "url"), [("no url", None), ("empty", ""), ("the same", URL)]
)
@pytest.mark.spec("recording", "PATCH rule 4: changing only events does not re-enable")
def test_without_another_url_a_disabled_subscription_stays_disabled(api, _case, url):
    endpoint_id = api.create()["endpoint_id"]
    disable(endpoint_id)
    body = {"events": []} | ({} if url is None else {"url": url})
    shown = api.patch(f"webhooks/{endpoint_id}", body).json()["item"]
    assert (shown["status"], shown["consecutive_failures"]) == (2, 20)
    assert shown["events"] == []


def test_a_new_url_of_an_active_subscription_keeps_its_counter(api):
    endpoint_id = api.create()["endpoint_id"]
    Endpoint.objects.filter(public_id=endpoint_id).update(consecutive_failures=7)
    shown = api.patch(f"webhooks/{endpoint_id}", {"url": OTHER_URL}).json()["item"]
    assert (shown["status"], shown["consecutive_failures"]) == (1, 7)


def test_what_waited_for_a_disabled_subscription_is_due_when_it_gets_a_new_url(api):
    endpoint_id = api.create()["endpoint_id"]
    ready(api)
    later = timezone.now() + timedelta(minutes=15)
    Delivery.objects.update(next_attempt_at=later)
    disable(endpoint_id)
    api.patch(f"webhooks/{endpoint_id}", {"url": OTHER_URL})
    assert Delivery.objects.filter(next_attempt_at__lte=timezone.now()).exists()


def test_an_identical_url_is_not_checked_again(api, monkeypatch):
    endpoint_id = api.create()["endpoint_id"]

    def resolve(_host, _port, **_options):
        raise socket.gaierror(socket.EAI_NONAME, "gone meanwhile")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    answer = api.patch(f"webhooks/{endpoint_id}", {"url": URL, "events": []})
    assert answer.status_code == 200


def test_staff_s_trusted_subscription_may_move_within_the_allowed_networks(
    api, settings
):
    settings.WEBHOOK_ALLOWED_TARGETS = ["10.1.0.0/16"]
    endpoint_id = api.create()["endpoint_id"]
    path, body = f"webhooks/{endpoint_id}", {"url": "https://10.1.2.3/"}
    error_of(api.patch(path, body), 400, "bad_request")
    Endpoint.objects.update(trusted=True)
    assert api.patch(path, body).json()["item"]["url"] == "https://10.1.2.3/"


# ── Delete ──────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "DELETE answers 200 {ok: true}")
def test_a_deleted_subscription_is_gone_and_what_waited_has_failed(api):
    endpoint_id = api.create()["endpoint_id"]
    ready(api)
    answer = api.delete(f"webhooks/{endpoint_id}")
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert api.get("webhooks").json() == {"items": []}
    assert Delivery.objects.get().status == Delivery.Status.FAILED
    error_of(api.delete(f"webhooks/{endpoint_id}"), 404, "not_found")
    ready(api, "aud_2")
    assert Delivery.objects.count() == 1


def test_of_two_deletions_at_once_the_second_finds_nothing(api):
    subscription = subscriptions.find(api.user, api.create()["endpoint_id"])
    subscriptions.delete(subscription)
    with pytest.raises(NotFoundError):
        subscriptions.delete(subscription)


def test_an_update_of_what_was_deleted_meanwhile_changes_nothing(api):
    subscription = subscriptions.find(api.user, api.create()["endpoint_id"])
    subscriptions.delete(subscription)
    with pytest.raises(NotFoundError):
        subscriptions.update(
            account=api.user, subscription=subscription, url=OTHER_URL, events=[]
        )
    assert Endpoint.objects.get().url == URL


def test_a_subscription_disabled_meanwhile_is_enabled_by_the_new_url(api):
    subscription = subscriptions.find(api.user, api.create()["endpoint_id"])
    disable(subscription.public_id)
    updated = subscriptions.update(
        account=api.user, subscription=subscription, url=OTHER_URL, events=[]
    )
    assert (updated.status, updated.consecutive_failures) == (1, 0)


# ── Whose it is ─────────────────────────────────────────────────────────────────────

WITH_ID = [
    ("PATCH", "", {"url": OTHER_URL, "events": []}),
    ("DELETE", "", None),
    ("POST", "/test", None),
    ("GET", "/deliveries", None),
]
IMPOSSIBLE_IDS = [
    "ep_" + "0" * 26,
    "ep_",
    "x",
    "%00",
    "ep_%00" + "0" * 25,
    "%ff",
    "%ED%A0%80",
    "ep_" + "Z" * 26,
    "1",
    "x" * 5000,
]


@pytest.mark.parametrize(("method", "tail", "body"), WITH_ID)
@pytest.mark.spec("recording", "another account's subscription is 404, never 403")
def test_another_account_s_subscription_is_not_there(api, stranger, method, tail, body):
    endpoint_id = api.create()["endpoint_id"]
    before = item(api, endpoint_id)
    path = f"webhooks/{endpoint_id}{tail}"
    theirs = stranger.send(method, path, body)
    absent = stranger.send(method, f"webhooks/ep_{'0' * 26}{tail}", body)
    error_of(theirs, 404, "not_found")
    assert theirs.content == absent.content
    assert item(api, endpoint_id) == before
    assert not Event.objects.exists()


@pytest.mark.parametrize("endpoint_id", IMPOSSIBLE_IDS)
@pytest.mark.parametrize(("method", "tail", "body"), WITH_ID)
@pytest.mark.spec("recording", "404 not_found: subscription id does not exist")
def test_an_id_that_does_not_exist_is_404(api, method, tail, body, endpoint_id):
    answer = api.send(method, f"webhooks/{endpoint_id}{tail}", body)
    error_of(answer, 404, "not_found")


# ── Bodies ──────────────────────────────────────────────────────────────────────────

TOO_LONG = 65_537
WRONG_URLS: list[Any] = [None, 1, 1.5, True, False, [], {}, ["x"], "\0", "x", " "]
WRONG_EVENTS: list[Any] = [
    None,
    1,
    True,
    "",
    "summary.completed",
    {},
    {"summary.completed": 1},
    [None],
    [1],
    [True],
    [[]],
    [["summary.completed"]],
    [{}],
    [""],
    ["nope"],
    ["Summary.Completed"],
    ["summary.completed\0"],
    ["summary.completed", "nope"],
    ["x" * 60_000],
]
BAD_JSON = [
    ("empty", b""),
    ("white space", b"  "),
    ("not JSON", b"url=https://example.com"),
    ("unfinished", b'{"url": '),
    ("trailing comma", b'{"url": "x",}'),
    ("two values", b"{}{}"),
    ("single quotes", b"{'url': 'x'}"),
    ("NaN", b'{"url": NaN}'),
    ("infinity", b'{"url": 1e999}'),
    ("not UTF-8", b'{"url": "\xff"}'),
    ("UTF-16", '{"url": "x"}'.encode("utf-16")),
    ("a byte order mark", b"\xef\xbb\xbf{}"),
    ("raw NUL", b'{"url": "\0"}'),
    ("a lone surrogate", b'{"url": "\\ud800"}'),
    ("an encoded surrogate", b'{"url": "\xed\xa0\x80"}'),
    ("a lone surrogate in a name", b'{"\\udfff": 1}'),
    ("deep arrays", b"[" * 60_000),
    ("deep objects", b'{"a":' * 10_000),
    ("closed deep arrays", b"[" * 30_000 + b"]" * 30_000),
    ("deep arrays in a field", b'{"events": ' + b"[" * 2000 + b"]" * 2000 + b"}"),
    ("an array", b"[]"),
    ("a string", b'"x"'),
    ("a number", b"1"),
    ("null", b"null"),
    ("true", b"true"),
]
WITH_BODY = ["POST", "PATCH"]


@pytest.fixture
def send_body(api):
    """Send a body to create or update; afterwards nothing must have changed."""
    endpoint_id = api.create()["endpoint_id"]
    paths = {"POST": "webhooks", "PATCH": f"webhooks/{endpoint_id}"}
    before = api.get("webhooks").json()

    def send(method, body, **options):
        return api.send(method, paths[method], body, **options)

    yield send
    assert api.get("webhooks").json() == before
    assert Endpoint.objects.count() == 1


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("url", WRONG_URLS, ids=repr)
def test_a_wrong_url_is_refused(send_body, method, url):
    body = {"url": url, "events": ["summary.completed"]}
    assert "url" in error_of(send_body(method, body), 400, "bad_request")


@pytest.mark.parametrize("body", [{}, {"events": []}, {"url": ""}], ids=repr)
@pytest.mark.spec("recording", "url is required at create")
def test_create_needs_a_url(send_body, body):
    assert "url" in error_of(send_body("POST", body), 400, "bad_request")


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("events", WRONG_EVENTS, ids=lambda value: repr(value)[:40])
@pytest.mark.spec("recording", "an unknown event type yields 400 bad_request")
def test_wrong_events_are_refused(send_body, method, events):
    body = {"url": OTHER_URL, "events": events}
    message = error_of(send_body(method, body), 400, "bad_request")
    assert "events" in message
    assert len(message) < 200


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize(("_case", "body"), BAD_JSON)
@pytest.mark.spec("recording", "malformed JSON is 400; an empty PATCH body too")
def test_what_is_not_a_json_object_is_refused(send_body, method, _case, body):
    error_of(send_body(method, body), 400, "bad_request")


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize(
    "media_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "multipart/form-data",
        "application/*",
        "*/*",
        "application/jsonp",
        "application/" + "x" * 5000,
        "application/json, text/plain",
    ],
)
@pytest.mark.spec("recording", "wrong media type 415 unsupported_media_type")
def test_another_media_type_is_refused(send_body, method, media_type):
    body = orjson.dumps({"url": OTHER_URL, "events": []})
    answer = send_body(method, body, content_type=media_type)
    error_of(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "media_type",
    ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json;"],
)
def test_parameters_and_case_of_the_media_type_do_not_matter(api, media_type):
    answer = api.post("webhooks", {"url": URL}, content_type=media_type)
    assert answer.status_code == 201


@pytest.mark.parametrize("method", WITH_BODY)
@pytest.mark.parametrize("size", [TOO_LONG, 3_000_000])
@pytest.mark.spec("recording", "body over the limit 413 payload_too_large")
def test_a_body_over_the_limit_is_refused(send_body, method, size):
    body = orjson.dumps({"url": OTHER_URL, "events": []}).ljust(size)
    error_of(send_body(method, body), 413, "payload_too_large")


def test_a_body_of_exactly_the_limit_is_read(api):
    body = orjson.dumps({"url": URL}).ljust(65_536)
    assert api.post("webhooks", body).status_code == 201


def test_of_a_field_named_twice_the_last_counts(api):
    body = b'{"url": "x", "url": "%s"}' % URL.encode()
    assert api.post("webhooks", body).json()["url"] == URL


@pytest.mark.parametrize(("method", "tail"), [("DELETE", ""), ("POST", "/test")])
@pytest.mark.spec("recording", "no body is read on DELETE and /test")
def test_delete_and_test_read_no_body(api, method, tail):
    endpoint_id = api.create()["endpoint_id"]
    path = f"webhooks/{endpoint_id}{tail}"
    answer = api.send(method, path, b"\xff[[[", content_type="text/plain")
    assert answer.status_code == 200


# ── Test ────────────────────────────────────────────────────────────────────────────


@pytest.mark.spec("recording", "test: 200 {event_id, queued: true}")
@pytest.mark.parametrize("events", [[], ["summary.completed"], ["webhook.ping"]])
def test_a_ping_goes_to_that_subscription_alone_whatever_its_events(api, events):
    tested = api.create(events=events)["endpoint_id"]
    api.create(events=["webhook.ping", "summary.completed"])
    answer = api.post(f"webhooks/{tested}/test")
    assert answer.status_code == 200
    assert list(answer.json()) == ["event_id", "queued"]
    assert answer.json()["queued"] is True
    delivery = Delivery.objects.select_related("event", "endpoint").get()
    assert delivery.endpoint.public_id == tested
    body = orjson.loads(delivery.event.body)
    assert body["id"] == answer.json()["event_id"] == delivery.event.public_id
    assert (body["type"], body["data"]) == ("webhook.ping", {"endpoint_id": tested})


@pytest.mark.spec("recording", "a disabled endpoint may be skipped without a record")
def test_a_ping_to_a_disabled_subscription_is_accepted_and_skipped(api):
    endpoint_id = api.create()["endpoint_id"]
    disable(endpoint_id)
    answer = api.post(f"webhooks/{endpoint_id}/test")
    assert (answer.status_code, answer.json()["queued"]) == (200, True)
    assert not Delivery.objects.exists()
    assert Event.objects.get().type == "webhook.ping"


# ── Throttles ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("scope", "tail"), [("create", ""), ("test", "/{}/test")])
@pytest.mark.spec("recording", "in production limits on create and /test by setting")
def test_a_rate_that_is_set_holds_for_each_account(
    api, stranger, settings, scope, tail
):
    cache.clear()
    mine, theirs = api.create()["endpoint_id"], stranger.create()["endpoint_id"]
    settings.RECORDING_RATES = {"create": "", "test": ""} | {scope: "1/hour"}
    path = f"webhooks{tail}"
    assert api.post(path.format(mine), {"url": URL}).status_code < 300
    answer = api.post(path.format(mine), {"url": URL})
    error_of(answer, 429, "too_many_requests")
    assert 0 < int(answer["Retry-After"]) <= 3601
    assert stranger.post(path.format(theirs), {"url": URL}).status_code < 300
    assert api.get("webhooks").status_code == 200


def test_times_are_utc_with_microseconds(api):
    with time_machine.travel("2030-01-02T03:04:05.000006Z", tick=False):
        api.token = Api(api.user).token
        api.create()
        [shown] = api.get("webhooks").json()["items"]
    assert shown["created_at"] == "2030-01-02T03:04:05.000006Z"


def test_the_profile_is_registered():
    assert profiles.get("recording").name == "recording"
