"""A database that is read-only, as after a failover, is an outage of writes: 503, and nothing is lost."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.db import InternalError, OperationalError, connection
from django.test import Client

from gateway import keys
from gateway.chat.metering import usage, writer
from recording.accounts import personal_tokens
from tests.factories import UserFactory
from tests.gateway.chat.metering.test_usage import ended
from tests.gateway.chat.metering.test_writer import Sink, record
from tests.gateway.client import Api
from tests.running import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def read_only():
    set_read_only("on")
    yield
    set_read_only("off")


def set_read_only(value: str) -> None:
    is_sqlite = connection.vendor == "sqlite"
    name = "PRAGMA query_only" if is_sqlite else "SET default_transaction_read_only"
    with connection.cursor() as cursor:
        cursor.execute(f"{name} = {value}")


@pytest.fixture
def key():
    return keys.create(tenant="acme", principal="ada").text


@pytest.fixture
def token():
    return personal_tokens.create(user=UserFactory.create(), days=1).text


def test_a_token_and_a_key_read_also_if_their_use_cannot_be_stored(
    token, key, read_only
):
    for bearer, path in {
        token: "/v1/webhooks",
        key: "/v1/webhooks/subscriptions",
    }.items():
        headers = {"Authorization": f"Bearer {bearer}"}
        assert Client().get(path, headers=headers).json() == {"items": []}


def test_the_catalogue_is_unavailable_for_writes_and_readable(read_only):
    mutation = 'mutation { addAuthor(author: {firstName: "A", lastName: "B"}) { id } }'
    assert _graphql("{ getAllBooks { id } }").status_code == 200
    response = _graphql(mutation)
    assert response.status_code == 503
    [error] = response.json()["errors"]
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    assert "read-only" not in response.text


def _graphql(query: str):
    headers = {"accept": "application/graphql-response+json"}
    return Client(raise_request_exception=False).post(
        "/graphql", {"query": query}, content_type="application/json", headers=headers
    )


def test_a_registration_is_unavailable(read_only):
    body = json.dumps({"redirect_uris": ["http://127.0.0.1/cb"]})
    response = Client().post("/oauth/register", body, content_type="application/json")
    assert response.status_code == 503
    assert response.json()["error"] == "temporarily_unavailable"


def test_a_gateway_subscription_is_unavailable(read_only):
    api = Api(tenant="acme", principal="ada")
    body = {"url": "http://127.0.0.1:9/", "event_types": []}
    assert api.call("POST", "/v1/webhooks/subscriptions", body).status_code == 503


def test_the_usage_of_chat_requests_is_written_later(monkeypatch, read_only):
    monkeypatch.setattr(writer, "EVERY_S", 0.0)
    monkeypatch.setattr(writer, "RETRY_S", 0.01)
    with pytest.raises((InternalError, OperationalError)) as refused:
        usage.write([ended()])
    sink = Sink(refused.value)

    async def run() -> None:
        background = sink.writer()
        background.start()
        record(background, "0")
        async with asyncio.timeout(PATIENCE_S):
            while not sink.batches:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await background.stop()

    asyncio.run(run())
    assert [len(batch) for batch in sink.batches] == [1]
