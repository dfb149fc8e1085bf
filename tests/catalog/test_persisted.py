"""Documents by hash: what Apollo's link for persisted queries sends, and an operator's list."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from catalog import persisted
from catalog.checks import listed_documents
from catalog.execution.limits import LIMITS

pytestmark = pytest.mark.django_db

QUERY = "query Books($title: String!) { searchBooks(title: $title) { id } }"
ADD = 'mutation { addCategory(category: {name: "x"}) { id } }'


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def apollo(sha256: object, version: object = 1) -> dict[str, object]:
    return {"persistedQuery": {"version": version, "sha256Hash": sha256}}


@pytest.fixture
def send(client):
    def post(accept="application/json", **parameters):
        return client.post(
            "/graphql", parameters, "application/json", headers={"Accept": accept}
        )

    return post


@pytest.fixture
def get(client):
    """GET with the parameters of a request; maps are JSON there."""

    def get(headers=None, **parameters):
        query = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in parameters.items()
        }
        return client.get("/graphql", query, headers=headers)

    return get


@pytest.fixture
def listed(tmp_path: Path, settings):
    """Write a manifest, and make it the server's list."""

    def write(manifest: object) -> Path:
        path = tmp_path / f"{digest(json.dumps(manifest))}.json"
        path.write_text(json.dumps(manifest))
        settings.CATALOG_OPERATIONS = str(path)
        return path

    return write


def code(response):
    [error] = response.json()["errors"]
    return error["extensions"]["code"]


class TestRegisteredDocuments:
    def test_an_unknown_hash_is_asked_for_and_known_from_then_on(self, send, get):
        text = QUERY.replace("query Books", "query FirstTime")
        extensions = apollo(digest(text))
        asked = send(variables={"title": ""}, extensions=extensions)
        assert asked.json() == {
            "errors": [
                {
                    "message": "PersistedQueryNotFound",
                    "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"},
                }
            ]
        }
        assert (asked.status_code, asked["Cache-Control"]) == (200, "no-store")
        registered = send(query=text, variables={"title": ""}, extensions=extensions)
        by_hash = send(variables={"title": ""}, extensions=extensions)
        by_get = get(variables={"title": ""}, extensions=extensions)
        by_id = send(variables={"title": ""}, documentId=f"sha256:{digest(text)}")
        for response in (registered, by_hash, by_get, by_id):
            assert response.json() == {"data": {"searchBooks": []}}

    def test_an_unknown_hash_is_400_in_the_newer_media_type(self, send):
        response = send("application/graphql-response+json", documentId="sha256:0")
        assert (response.status_code, code(response)) == (
            400,
            "PERSISTED_QUERY_NOT_FOUND",
        )

    def test_a_document_is_never_registered_under_another_hash(self, send):
        response = send(query=QUERY, extensions=apollo(digest("{ __typename }")))
        assert code(response) == "BAD_REQUEST"
        response = send(
            extensions=apollo(digest(QUERY.replace("query Books", "query Other")))
        )
        assert code(response) == "PERSISTED_QUERY_NOT_FOUND"

    def test_a_mutation_by_hash_is_refused_by_get(self, send, get):
        assert "errors" not in send(query=ADD, extensions=apollo(digest(ADD))).json()
        response = get(extensions=apollo(digest(ADD)))
        assert (response.status_code, code(response)) == (405, "METHOD_NOT_ALLOWED")

    @pytest.mark.parametrize(
        "parameters",
        [
            {"documentId": 1},
            {"documentId": "x", "query": "{ __typename }"},
            {"extensions": {"persistedQuery": 1}},
            {"extensions": apollo(digest(QUERY), version=2)},
            {"extensions": apollo(None)},
            {"extensions": apollo("x" * 64)},
            {"extensions": apollo(digest(QUERY).upper())},
        ],
    )
    def test_malformed_parameters_are_400(self, send, parameters):
        response = send(**parameters)
        assert (response.status_code, code(response)) == (400, "BAD_REQUEST")

    def test_the_documents_used_last_stay(self):
        documents = persisted.RegisteredDocuments(most_characters=10)
        for text in ("1234", "5678", "90ab"):
            documents.check(text, digest(text))
        assert documents.text(digest("5678")) == "5678"
        documents.check("cdef", digest("cdef"))
        assert documents.characters == 8
        for text in ("1234", "90ab"):
            with pytest.raises(persisted.PersistedQueryNotFoundError):
                documents.text(digest(text))

    def test_a_document_that_is_too_long_is_not_kept(self):
        documents = persisted.RegisteredDocuments()
        text = "#" * (LIMITS.characters + 1)
        documents.check(text, digest(text))
        assert documents.characters == 0


@pytest.mark.parametrize(
    "manifest",
    [
        {digest(QUERY): QUERY},
        {f"sha256:{digest(QUERY)}": QUERY},
        {
            "format": "apollo-persisted-query-manifest",
            "version": 1,
            "operations": [
                {"id": digest(QUERY), "body": QUERY, "name": "Books", "type": "query"}
            ],
        },
    ],
)
class TestListedDocuments:
    def test_a_listed_document_is_executed(self, send, listed, manifest):
        listed(manifest)
        variables = {"title": ""}
        for parameters in (
            {"documentId": f"sha256:{digest(QUERY)}"},
            {"documentId": digest(QUERY)},
            {"extensions": apollo(digest(QUERY))},
            {"query": QUERY},
            {"query": QUERY, "extensions": apollo(digest(QUERY))},
        ):
            response = send(variables=variables, **parameters)
            assert response.json() == {"data": {"searchBooks": []}}

    def test_every_other_document_is_refused(self, send, listed, manifest):
        listed(manifest)
        other = "{ __typename }"
        assert code(send(query=other)) == "QUERY_NOT_IN_SAFELIST"
        response = send(query=other, extensions=apollo(digest(other)))
        assert code(response) == "QUERY_NOT_IN_SAFELIST"
        response = send(query=other, extensions=apollo(digest(QUERY)))
        assert code(response) == "BAD_REQUEST"
        for parameters in (
            {"documentId": "unknown"},
            {"extensions": apollo(digest(other))},
        ):
            assert code(send(**parameters)) == "PERSISTED_QUERY_NOT_IN_LIST"


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ([], "not a JSON object"),
        ({"x": 1}, "'x' is not a string"),
        ({"version": 2, "operations": []}, "version must be 1"),
        ({"version": 1, "operations": {}}, "operations a list"),
        ({"version": 1, "operations": [{"id": "x"}]}, "operation 1 has no id and body"),
    ],
)
def test_a_fault_of_the_list_stops_the_start(listed, manifest, reason):
    path = listed(manifest)
    with pytest.raises(ImproperlyConfigured, match=reason) as refusal:
        persisted.documents(str(path))
    assert f"CATALOG_OPERATIONS ({path})" in str(refusal.value)


def test_a_missing_or_broken_file_stops_the_start(tmp_path):
    with pytest.raises(ImproperlyConfigured, match="No such file"):
        persisted.documents(str(tmp_path / "missing.json"))
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ImproperlyConfigured, match="CATALOG_OPERATIONS"):
        persisted.documents(str(tmp_path / "broken.json"))


def test_the_check_names_listed_documents_that_could_not_be_executed(listed):
    listed(
        {
            "good": QUERY,
            "wrong": "{ nothing }",
            "deep": "{ getAllBooks "
            + "{ author { books " * 8
            + "{ id }"
            + "}}" * 8
            + "}",
        }
    )
    faults = [
        (fault.id, fault.msg.partition(" is refused: ")) for fault in listed_documents()
    ]
    assert [(fault[0], fault[1][0]) for fault in faults] == [
        ("catalog.E001", "CATALOG_OPERATIONS: the document 'wrong'"),
        ("catalog.E001", "CATALOG_OPERATIONS: the document 'deep'"),
    ]


class TestCaching:
    def test_an_answer_to_a_named_document_by_get_may_be_cached(
        self, settings, send, get
    ):
        settings.CATALOG_CACHE_S = 60
        send(query=QUERY, variables={"title": ""}, extensions=apollo(digest(QUERY)))
        named = {"variables": {"title": ""}, "extensions": apollo(digest(QUERY))}
        response = get(**named)
        assert response["Cache-Control"] == "public, max-age=60"
        again = get(headers={"If-None-Match": response["ETag"]}, **named)
        assert (again.status_code, again.content) == (304, b"")
        assert send(**named)["Cache-Control"] == "no-store"
        assert get(query=QUERY, **named)["Cache-Control"] == "public, max-age=60"
        assert get(query="{ __typename }")["Cache-Control"] == "no-cache"
        assert get(query="{ nothing }")["Cache-Control"] == "no-store"

    def test_without_a_setting_each_answer_is_revalidated(self, get):
        response = get(query="{ __typename }")
        assert (response["Cache-Control"], "ETag" in response) == ("no-cache", True)
