import gzip
import json
import sqlite3

import pytest
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from catalog.models import Category

pytestmark = pytest.mark.django_db

JSON = "application/json"
RESPONSE_JSON = "application/graphql-response+json"


def code(response):
    [error] = response.json()["errors"]
    assert "data" not in response.json()
    return error["extensions"]["code"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"query": 1}',
        b'[{"query": "{ __typename }"}]',
        b'{"query": "{ __typename }", "variables": []}',
        b'{"query": "{ __typename }", "extensions": 1}',
        b'{"query": "{ __typename }", "operationName": 1}',
        b'{"query": "{ __typename }\xff"}',
        b'{"query": "\\ud800"}',
        b'{"query": "{ __typename }", "variables": ' + b'{"a":' * 5000 + b"}",
        b"NaN",
    ],
)
def test_a_malformed_request_is_400(send, body):
    response = send(body)
    assert (response.status_code, code(response)) == (400, "BAD_REQUEST")


@pytest.mark.parametrize(
    ("content_type", "headers"),
    [
        ("", {}),
        ("application/x-www-form-urlencoded", {}),
        ("multipart/form-data; boundary=x", {}),
        ("application/graphql", {}),
        ("application/json; charset=latin-1", {}),
        ("application/json", {"Content-Encoding": "gzip"}),
    ],
)
def test_only_json_in_utf_8_is_read(send, content_type, headers):
    body = json.dumps({"query": "{ __typename }"}).encode()
    response = send(body, content_type, **headers)
    assert (response.status_code, code(response)) == (415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_body_of_more_than_a_megabyte_is_413(send):
    response = send(
        json.dumps({"query": "{ __typename }", "extensions": {"a": "x" * 2**20}})
    )
    assert (response.status_code, code(response)) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize("method", ["put", "patch", "delete", "options"])
def test_other_methods_are_405(client, method):
    response = getattr(client, method)("/graphql")
    assert (response.status_code, code(response)) == (405, "METHOD_NOT_ALLOWED")
    assert response["Allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("accept", "answered", "status"),
    [
        (None, JSON, 200),
        ("", JSON, 200),
        ("*/*", JSON, 200),
        ("application/*", JSON, 200),
        ("application/json; charset=utf-8", JSON, 200),
        (RESPONSE_JSON, RESPONSE_JSON, 400),
        (f"{RESPONSE_JSON}, {JSON};q=0.9", RESPONSE_JSON, 400),
        (f"{RESPONSE_JSON};q=0.1, {JSON}", JSON, 200),
        (f"text/html, {RESPONSE_JSON}", RESPONSE_JSON, 400),
        (f"{JSON};q=0.1, */*;q=0.9", RESPONSE_JSON, 400),
    ],
)
def test_the_client_chooses_the_kind_of_json_and_with_it_the_status_of_a_bad_document(
    send, accept, answered, status
):
    headers = {} if accept is None else {"Accept": accept}
    response = send(json.dumps({"query": "{"}), **headers)
    assert response["Content-Type"] == f"{answered}; charset=utf-8"
    assert (response.status_code, code(response)) == (status, "GRAPHQL_PARSE_FAILED")
    assert "Accept" in response["Vary"]


@pytest.mark.parametrize("accept", ["image/png", ",", f"{JSON};q=0", "*/*;q=0"])
def test_a_client_that_takes_no_json_is_406(send, accept):
    response = send(json.dumps({"query": "{ __typename }"}), Accept=accept)
    assert (response.status_code, code(response)) == (406, "NOT_ACCEPTABLE")


@pytest.mark.parametrize("method", ["get", "head"])
def test_get_and_head_read_but_never_change(client, method):
    send = getattr(client, method)
    assert send("/graphql", {"query": "{ getAllBooks { id } }"}).status_code == 200
    query = 'mutation { addCategory(category: {name: "x"}) { id } }'
    response = send("/graphql", {"query": query})
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert not Category.objects.exists()


def test_get_takes_variables_and_a_name(client):
    parameters = {
        "query": "query A($id: ID!) { getBookById(id: $id) { id } } query B { __typename }",
        "operationName": "A",
        "variables": '{"id": "1"}',
    }
    assert client.get("/graphql", parameters).json() == {"data": {"getBookById": None}}
    for bad in ("{", "[]", "1"):
        response = client.get("/graphql", parameters | {"variables": bad})
        assert (response.status_code, code(response)) == (400, "BAD_REQUEST")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"query": "{ nothing }"}, "GRAPHQL_VALIDATION_FAILED"),
        ({"query": "{ a"}, "GRAPHQL_PARSE_FAILED"),
        ({"query": "query A { __typename } query B { __typename }"}, "OPERATION_RESOLUTION_FAILURE"),
        ({"query": "{ __typename }", "operationName": "X"}, "OPERATION_RESOLUTION_FAILURE"),
        ({"query": "query ($a: ID!) { getBookById(id: $a) { id } }"}, "BAD_USER_INPUT"),
        ({"query": "fragment F on Book { id }"}, "GRAPHQL_VALIDATION_FAILED"),
    ],
)  # fmt: skip
def test_every_error_carries_a_code(send, body, expected):
    errors = send(json.dumps(body)).json()["errors"]
    assert {error["extensions"]["code"] for error in errors} == {expected}


def test_no_cookie_is_set_and_none_is_read(client, admin_user):
    client.force_login(admin_user)
    body = json.dumps({"query": "{ __typename }"})
    response = client.post("/graphql", body, content_type=JSON)
    assert response.cookies == {}
    assert "Cookie" not in response["Vary"]


def broken(*_: object, **__: object):
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("place", "status"),
    [
        ("catalog.execution.operations.Executor.answer", 500),
        ("catalog.execution.columns.fetch", 200),
    ],
)
def test_a_failure_is_masked_and_names_the_request(send, monkeypatch, place, status):
    monkeypatch.setattr(place, broken)
    query = json.dumps({"query": "{ getAllBooks { id } }"})
    response = send(query, **{"X-Request-Id": "r-1"})
    assert (response.status_code, response["X-Request-Id"]) == (status, "r-1")
    [error] = response.json()["errors"]
    assert error["message"] == "Internal server error"
    assert error["extensions"] == {"code": "INTERNAL_SERVER_ERROR", "requestId": "r-1"}


@pytest.fixture
def no_categories(monkeypatch):
    """A database that ends every statement about categories."""
    execute = CursorWrapper.execute

    def ended(self, sql, params=None):
        if '"catalog_category"' in sql:
            raise OperationalError("canceling statement due to statement timeout")
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", ended)


ADA = 'addAuthor(author: {firstName: "Ada", lastName: "Byron"}) { firstName }'
POEM = 'addCategory(category: {name: "Poem"}) { id }'


@pytest.mark.parametrize(
    ("query", "data"),
    [
        (f"mutation {{ a: {ADA} b: {POEM} }}", {"a": {"firstName": "Ada"}, "b": None}),
        (f"mutation {{ b: {POEM} c: deleteBook(id: 0) }}", {"b": None, "c": False}),
        ("{ getAllCategories { id } getAllBooks { id } }", {"getAllCategories": None, "getAllBooks": []}),
        ("{ getCategoryById(id: 1) { id } getBookById(id: 1) { id } }", {"getCategoryById": None, "getBookById": None}),
    ],
)  # fmt: skip
def test_an_outage_of_one_part_is_200_with_the_other_parts(
    send, no_categories, query, data
):
    response = send(json.dumps({"query": query}))
    assert response.status_code == 200
    assert "Retry-After" not in response
    assert response.json()["data"] == data
    [error] = response.json()["errors"]
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"


@pytest.mark.parametrize("accept", [JSON, RESPONSE_JSON])
@pytest.mark.parametrize(
    "query",
    [
        f"mutation {{ {POEM} }}",
        f"mutation {{ a: {POEM} b: {POEM} }}",
        'mutation { a: addCategory(category: {name: ""}) { id } b: ' + POEM + " }",
        "{ getAllCategories { id } }",
        "{ a: getAllCategories { id } b: getCategoryById(id: 1) { id } }",
    ],
)
def test_an_outage_of_everything_is_503(send, no_categories, query, accept):
    response = send(json.dumps({"query": query}), Accept=accept)
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert response.json()["data"] is None
    assert "INTERNAL_SERVER_ERROR" in {
        error["extensions"]["code"] for error in response.json()["errors"]
    }


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_fails_does_not_invite_to_repeat_the_change(send, monkeypatch):
    def lost(_self: object):
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(BaseDatabaseWrapper, "commit", lost)
    response = send(json.dumps({"query": f"mutation {{ {POEM} }}"}))
    assert response.status_code == 200
    assert "Retry-After" not in response
    assert response.json()["data"] == {"addCategory": None}
    [error] = response.json()["errors"]
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"


@pytest.mark.django_db(transaction=True)
def test_a_commit_that_sqlite_has_rolled_back_is_an_outage(send, monkeypatch):
    def full(_self: object):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise OperationalError(*error.args) from error

    monkeypatch.setattr(BaseDatabaseWrapper, "commit", full)
    response = send(json.dumps({"query": f"mutation {{ {POEM} }}"}))
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert response.json()["data"] is None


def test_a_browser_gets_graphiql_without_any_other_host(client):
    response = client.get("/graphql", headers={"Accept": "text/html,*/*;q=0.8"})
    assert response["Content-Type"].startswith("text/html")
    assert b"://" not in response.content
    assert b"<style" not in response.content
    assert b"<script>" not in response.content
    assert response.cookies == {}


@pytest.mark.parametrize(
    "accept", ["text/html;q=0, */*", "application/json, text/html"]
)
def test_a_client_that_prefers_json_to_pages_gets_json(client, accept):
    query, headers = {"query": "{ __typename }"}, {"Accept": accept}
    response = client.get("/graphql", query, headers=headers)
    assert response.json() == {"data": {"__typename": "Query"}}


def test_a_long_answer_is_compressed_for_clients_that_take_gzip(send):
    query = json.dumps({"query": "{ __schema { types { name description } } }"})
    plain = send(query).content
    answer = send(query, **{"Accept-Encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert gzip.decompress(answer.content) == plain
    assert "Accept-Encoding" in answer["Vary"]


SHOP = "https://shop.example"


@pytest.mark.parametrize(
    ("setting", "origin", "allowed"),
    [
        ({}, SHOP, None),
        ({"CORS_ALLOWED_ORIGINS": [SHOP]}, SHOP, SHOP),
        ({"CORS_ALLOWED_ORIGINS": [SHOP]}, f"{SHOP}.evil", None),
        ({"CORS_ALLOW_ALL_ORIGINS": True}, SHOP, "*"),
    ],
)
def test_scripts_of_listed_sites_may_read_the_catalogue(
    client, send, settings, setting, origin, allowed
):
    if setting:  # as CATALOG_CORS_ORIGINS sets them
        middleware = "corsheaders.middleware.CorsMiddleware"
        settings.MIDDLEWARE = [middleware, *settings.MIDDLEWARE]
        for name, value in setting.items():
            setattr(settings, name, value)
    preflight = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    query = json.dumps({"query": "{ __typename }"})
    sent = send(query, Origin=origin)
    for response in (sent, client.options("/graphql", headers=preflight)):
        assert response.get("Access-Control-Allow-Origin") == allowed
        assert "Access-Control-Allow-Credentials" not in response
