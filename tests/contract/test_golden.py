"""Replay every case of the golden files, and compare each response to the byte."""

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, transaction
from django.http import HttpResponse
from django.test import Client, RequestFactory

from catalog.models import Author, Book
from config.asgi import application
from gateway import keys
from gateway.chat import runtime
from gateway.chat.loop_thread import LOOP_THREAD
from gateway.models import Document
from recording.accounts import personal_tokens
from recording.oauth.models import Application
from tests.clock import travel
from tests.contract.golden import SECURITY, WITH_BODY, Case, Record, Response, Route
from tests.contract.routes import CHAT_ROUTES, DJANGO_ROUTES, HOOKS, SUBSCRIPTIONS, URL
from tests.documented import assert_documented
from webhooks_core.models import Delivery, Endpoint, Event

HERE = Path(__file__).parent
TABLES = [
    model._meta.db_table
    for model in (Endpoint, Event, Delivery, Document, Author, Book, Application)
]
NOW = "2030-01-01T00:00:00Z"
HEADERS = {"X-Tenant-Id": "acme", "X-Principal-Id": "ada"}
REQUEST_ID = {"X-Request-Id": "golden"}
CALLERS_IN_CHAT: Mapping[str, Mapping[str, str]] = {
    "nobody": {},
    "bad token": {"Authorization": "Bearer nonsense"},
    "headers": HEADERS,
    "half headers": {"X-Tenant-Id": "acme"},
}


def compare(record: Record, name: str, config: pytest.Config) -> None:
    """Compare with the golden file, or write it with --write-golden."""
    path = HERE / name
    if config.getoption("write_golden"):
        path.write_text(record.text())
    golden, now = path.read_text().splitlines(), record.text().splitlines()
    difference = "\n".join(unified_diff(golden, now, "golden", "now", lineterm="", n=1))
    assert not difference, f"clients see a difference:\n{difference[:20_000]}"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep thousands of requests out of the captured log."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def fixed_time() -> Iterator[None]:
    with travel(NOW, tick=False):
        yield


@pytest.fixture
def world(db, fixed_time) -> dict[str, Any]:
    """Return names for what exists, and headers for each identity."""
    ada, bob = (User.objects.create_user(it, password="x") for it in ("ada", "bob"))
    author = Author.objects.create(first_name="Ursula", last_name="Le Guin")
    Book.objects.create(name="The Dispossessed", page_count=387, author=author)
    identities = {
        "nobody": {},
        "bad token": {"Authorization": "Bearer nonsense"},
        "account": _bearer(personal_tokens.create(user=ada, days=1).text),
        "gateway key": _bearer(keys.create(tenant="acme", principal="ada").text),
        "headers": HEADERS,
        "half headers": {"X-Tenant-Id": "acme"},
        "session": {},
    }
    names = {
        "endpoint": _made(HOOKS, identities["account"], "endpoint_id"),
        "other_endpoint": _made(
            HOOKS, _bearer(personal_tokens.create(user=bob, days=1).text), "endpoint_id"
        ),
        "absent_endpoint": "ep_" + "0" * 26,
        "subscription": _made(SUBSCRIPTIONS, HEADERS, "id"),
        "other_subscription": _made(
            SUBSCRIPTIONS, HEADERS | {"X-Tenant-Id": "globex"}, "id"
        ),
        "absent_subscription": "whsub_" + "0" * 26,
    }
    for address in (
        f"{HOOKS}/{names['endpoint']}",
        f"{SUBSCRIPTIONS}/{names['subscription']}",
    ):
        owner = HEADERS if SUBSCRIPTIONS in address else identities["account"]
        assert Client(headers=owner).post(f"{address}/test").status_code < 300
    return {"names": names, "identities": identities, "ada": ada}


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _made(address: str, headers: Mapping[str, str], key: str) -> str:
    answer = Client(headers=dict(headers)).post(
        address, {"url": URL}, content_type="application/json"
    )
    assert answer.status_code == 201, answer.content
    return str(answer.json()[key])


@pytest.mark.spec(
    "recording",
    "wrong method 405 method_not_allowed, before 401",
    "order: 401 before object, media type and body",
    "order: object 404 before 415 and malformed body",
    "order: 415 before malformed body, body before fields",
    "unknown address under /v1 404",
    "recording data is read-only through the interface",
    "webhook paths carry /v1, OAuth paths no version",
    "url is required at create",
    "an unknown event type yields 400 bad_request",
    "create response",
    "the secret is returned only once, on creation",
    "Subscription fields",
    "GET /v1/webhooks lists the account's subscriptions as items",
    "DELETE answers 200 {ok: true}",
    "metadata: issuer and endpoints",
    "metadata: what is supported",
)
@pytest.mark.spec("gateway", "management paths carry /v1, chat /v2, the signature v1")
def test_django_answers_as_it_always_did(world, pytestconfig):
    client = Client(raise_request_exception=False)
    session = Client(raise_request_exception=False)
    session.force_login(world["ada"])
    record = Record()
    for route in DJANGO_ROUTES:
        record.add(route, _sender(world, client, session))
    compare(record, "django.txt", pytestconfig)


def _sender(
    world: Mapping[str, Any], client: Client, session: Client
) -> Callable[[Case], Response]:
    before = _rows()

    def send(case: Case) -> Response:
        with transaction.atomic():
            answer = (session if case.identity == "session" else client).generic(
                case.method,
                _filled(case.route.path, world["names"]),
                case.body,
                case.content_type,
                headers=world["identities"][case.identity] | REQUEST_ID,
            )
            body = answer.getvalue()
            if case.method in WITH_BODY and answer.status_code >= 400:
                assert _rows() == before, f"{case}: refused, and something was stored"
            transaction.set_rollback(True)  # each case meets the same world
        kind = answer.get("Content-Type", "")
        path = _filled(case.route.path, world["names"])
        assert_documented(case.method, path, answer.status_code, kind, body)
        cookies = [("Set-Cookie", it.OutputString()) for it in answer.cookies.values()]
        client.cookies.clear()
        return Response(answer.status_code, [*answer.items(), *cookies], body)

    return send


def _rows() -> tuple[int, ...]:
    counts = ", ".join(f"(SELECT count(*) FROM {table})" for table in TABLES)  # noqa: S608 - our own
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}")
        counted: tuple[int, ...] = cursor.fetchone()
    return counted


def _filled(path: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda it: names.get(it[1], it[0]), path)


def test_chat_answers_as_it_always_did(transactional_db, pytestconfig):
    compare(asyncio.run(_chat()), "chat.txt", pytestconfig)


async def _chat() -> Record:
    try:
        return _recorded(
            [await _ask(case, CALLERS_IN_CHAT[case.identity]) for case in _chat_cases()]
        )
    finally:
        await runtime.stop()


def _chat_cases() -> list[Case]:
    return [case for route in _chat_routes() for case in route.cases()]


def _chat_routes() -> list[Route]:
    return [
        route._replace(
            identities=tuple(
                name for name in route.identities if name in CALLERS_IN_CHAT
            )
        )
        for route in CHAT_ROUTES
    ]


def _recorded(responses: Sequence[Response]) -> Record:
    record, remaining = Record(), iter(responses)
    for route in _chat_routes():
        record.add(route, lambda _: next(remaining))
    return record


def test_djangos_own_handlers_answer_chat_in_the_same_way(transactional_db):
    handler = WSGIHandler()
    LOOP_THREAD.stop()  # an earlier test may have left a runtime, with its own models
    try:
        responses = [_ask_django(handler, case) for case in _chat_cases()]
    finally:
        LOOP_THREAD.stop()
    assert _recorded(responses).text() == (HERE / "chat.txt").read_text()


def _ask_django(handler: WSGIHandler, case: Case) -> Response:
    """Return what the handler gives a server, which leaves out the body of HEAD itself."""
    request = RequestFactory().generic(
        case.method,
        case.route.path,
        case.body,
        case.content_type,
        headers={**CALLERS_IN_CHAT[case.identity], **REQUEST_ID},
    )
    answer = handler.get_response(request)
    assert isinstance(answer, HttpResponse)
    # Django's middleware adds all of these everywhere; pages need them.
    headers = [(name, it) for name, it in answer.items() if name not in SECURITY]
    headers.append(("X-Content-Type-Options", answer["X-Content-Type-Options"]))
    return Response(answer.status_code, headers, answer.content)


async def _ask(case: Case, identity: Mapping[str, str]) -> Response:
    """Send one request to the ASGI application."""
    headers = {"Host": "localhost", "Content-Type": case.content_type}
    headers |= dict(identity) | REQUEST_ID | {"Content-Length": str(len(case.body))}
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": case.body.encode()}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": case.method,
        "path": case.route.path,
        "raw_path": case.route.path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items() if v],
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 8000),
    }
    await application(scope, receive, send)
    start, *parts = sent
    shown = [(k.decode(), v.decode()) for k, v in start["headers"]]
    body = b"".join(it["body"] for it in parts)
    kind = next((v for k, v in shown if k.lower() == "content-type"), "")
    assert_documented(case.method, case.route.path, start["status"], kind, body)
    return Response(start["status"], shown, body)
