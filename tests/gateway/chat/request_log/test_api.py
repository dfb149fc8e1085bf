"""GET /v1/requests: a tenant's log, and nobody else's."""

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from gateway import keys
from tests.gateway.chat.factories import NOON, RequestRecordFactory
from tests.gateway.client import Api

pytestmark = pytest.mark.django_db
PATH = "/v1/requests"


def shown(api: Api, query: str) -> list[str]:
    response = api.call("GET", f"{PATH}?{query}")
    assert response.status_code == 200, response.content
    return [item["request_id"] for item in response.json()["items"]]


def test_a_tenant_reads_its_own_requests_alone(acme: Api, globex: Api):
    RequestRecordFactory.create(request_id="mine", status=500)
    row = RequestRecordFactory.create(prompt='{"messages":[]}', request_id="mine")
    RequestRecordFactory.create(tenant="globex", request_id="mine")
    assert shown(acme, "") == ["mine", "mine"]
    details = acme.call("GET", f"{PATH}/{row.public_id}").json()
    assert details["prompt"] == {"messages": []}
    assert details["answer"][0]["text"] == "Hello"
    assert "base_url" not in details
    assert acme.call("GET", f"{PATH}/mine").json() == details  # the newest
    refused = globex.call("GET", f"{PATH}/{row.public_id}")
    assert (refused.status_code, list(refused.json())) == (404, ["detail"])


def test_what_is_not_kept_is_null_and_what_was_refused_is_listed(acme: Api):
    texts = dict.fromkeys(("prompt", "answer", "tools"))
    row = RequestRecordFactory.create(model="", status=429, error="No.", **texts)
    shown = acme.call("GET", f"{PATH}/{row.public_id}").json()
    assert (shown["answered_by"], shown["status"], shown["error"]) == ("", 429, "No.")
    assert [shown[name] for name in texts] == [None] * 3


def test_a_key_reads_with_its_scope_for_its_models_alone(acme: Api):
    RequestRecordFactory.create(request_id="small")
    hidden = RequestRecordFactory.create(requested="big")

    def key(**fields: Any) -> Api:
        created = keys.create(tenant="acme", principal="ada", **fields)
        return Api(key=created.text)

    limited = key(scopes=["requests"], models=["small"])
    assert shown(limited, "") == ["small"]
    assert limited.call("GET", f"{PATH}/{hidden.public_id}").status_code == 404
    assert key(scopes=["chat"]).call("GET", PATH).status_code == 403


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("model=big", ["big"]),
        ("key=7", ["key"]),
        ("status=499", ["left"]),
        ("status=500", ["broken"]),
        ("status=200", ["key", "big"]),
        (
            f"since={quote((NOON + timedelta(minutes=2)).isoformat())}",
            ["key", "broken"],
        ),
        (f"until={quote((NOON + timedelta(minutes=1)).isoformat())}", ["big"]),
    ],
)
def test_requests_are_filtered(acme: Api, query: str, found: list[str]):
    rows: tuple[dict[str, Any], ...] = (
        {"request_id": "big", "requested": "big"},
        {"request_id": "left", "status": 499},
        {"request_id": "broken", "error_status": 500},
        {"request_id": "key", "key_id": 7},
    )
    for number, fields in enumerate(rows):
        RequestRecordFactory.create(
            created_at=NOON + timedelta(minutes=number), **fields
        )
    assert shown(acme, query) == found


def test_pages_go_on_behind_their_cursor(acme: Api):
    for number in range(5):
        RequestRecordFactory.create(request_id=str(number))
    first = acme.call("GET", f"{PATH}?page_size=3").json()
    second = acme.call("GET", f"{PATH}?cursor={first['next_cursor']}").json()
    ids = [item["request_id"] for page in (first, second) for item in page["items"]]
    assert (ids, second["next_cursor"]) == (["4", "3", "2", "1", "0"], "")


@pytest.mark.parametrize(
    "query",
    [
        *("cursor=x-y", "limit=5", "since=yesterday", "status=x", "key=-1"),
        *("model=%00", f"model={'x' * 129}", "page_size=0", "text=needle"),
        "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
    ],
)
def test_a_malformed_query_is_refused(acme: Api, query: str):
    assert acme.call("GET", f"{PATH}?{query}").status_code == 400


@pytest.mark.parametrize("name", ["absent", "a%00b", "%F0%9F%9A%A2", "x" * 300])
def test_an_absent_request_is_not_found(acme: Api, name: str):
    assert acme.call("GET", f"{PATH}/{name}").status_code == 404
