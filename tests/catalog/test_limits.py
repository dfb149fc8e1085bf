from __future__ import annotations

import sys
import tracemalloc
from typing import Any

import pytest
from graphql import get_introspection_query, get_operation_ast
from structlog.testing import capture_logs

from catalog.execution.context import Context
from catalog.execution.documents import Documents, prepare
from catalog.execution.operations import Executor, GraphQLRequest
from catalog.schema.contract import schema
from catalog.views import executor

pytestmark = pytest.mark.django_db


def chain(depth, leaf="id"):
    """Return a query this many fields deep."""
    steps = ["getAllBooks", *(["author", "books"] * depth)][: depth - 1]
    return "{ " + " { ".join([*steps, leaf]) + " }" * depth


def below_the_cost(depth):
    """Return a query this deep that costs little: an author's books have no further list."""
    return "{ getBookById(id: 1) { " + "... { " * depth + "id" + " }" * depth + " } }"


BOMB = "{ getBookById(id: 1) { ...F0 } } " + " ".join(
    f"fragment F{n} on Book {{ ...F{n + 1} ...F{n + 1} }}" for n in range(40)
) + " fragment F40 on Book { id name }"  # fmt: skip

ABUSES = {
    "a fragment bomb": (BOMB, "expanded fields"),
    "a hundred thousand braces": ("{ a" * 100_000, "characters"),
    "many braces": ("{a" * 45_000, "nesting"),
    "many brackets": ("{ a(b: " + "[" * 90_000, "nesting"),
    "a comment of 500 KB": ("#" + "x" * 500_000 + "\n{ __typename }", "characters"),
    "forty thousand comments": ("#\n" * 40_000 + "{ __typename }", "tokens"),
    "a string of 500 KB": ('{ searchBooks(title: "' + "x" * 500_000 + '") { id } }', "characters"),
    "thirty-one aliases": ("{ getAllBooks { " + " ".join(f"a{n}: id" for n in range(31)) + " } }", "aliases"),
    "a long alias": ("{ getAllBooks { " + "a" * 1_001 + ": id } }", "alias characters"),
    "a long alias of an edge": ("{ books { edges { " + "a" * 1_001 + ": cursor } } }", "alias characters"),
    "a long alias in introspection": ("{ __schema { types { " + "a" * 1_001 + ": name } } }", "alias characters"),
    "long aliases in fragments": ("{ getAllBooks { ...A b: name ...A } } fragment A on Book { " + "a" * 500 + ": id }", "alias characters"),
    "aliases in fragments": ("{ getAllBooks { ...A b: name ...A } } fragment A on Book { " + " ".join(f"a{n}: id" for n in range(15)) + " }", "aliases"),
    "twenty-one root fields": ("{ " + "getAllBooks { id } " * 21 + "}", "root fields"),
    "fifty-one directives": ("{ __typename " + "@skip(if: false) " * 51 + "}", "directives"),
    "thirteen levels": (chain(13), "depth"),
    "lists of lists of lists of lists": (chain(8), "cost"),
    "a field named two hundred times": ("{ getAllBooks { " + "id " * 200 + "} }", "repeats"),
    "two hundred inline fragments": ("{ getAllBooks { " + "... { id } " * 200 + "} }", "repeats"),
    "too many tokens": ("{ " + "a " * 2_000 + "}", "tokens"),
    "fifty-one fragments": ("{ __typename } " + " ".join(f"fragment F{n} on Book {{ id }}" for n in range(51)), "fragments"),
    "sixty inline fragments": (below_the_cost(60), "nesting"),
    "introspection that multiplies": ("{ __schema { types { " + "fields { type { " * 7 + "name" + " } }" * 7 + " } } }", "cost"),
    "introspection beyond its depth": ("{ __schema { queryType { " + "ofType { " * 20 + "name" + " }" * 20 + " } } }", "introspection depth"),
}  # fmt: skip


@pytest.mark.parametrize("name", ABUSES)
def test_a_document_beyond_a_limit_is_refused_with_the_limits_name(
    ask, name, django_assert_num_queries
):
    query, limit = ABUSES[name]
    with django_assert_num_queries(0):
        answer = ask(query)
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "QUERY_TOO_COMPLEX"
    assert error["extensions"]["limit"] == limit
    assert limit in error["message"]
    assert "data" not in answer


def inline(levels, leaf):
    return "... { " * levels + leaf + " }" * levels


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize(
    ("outer", "inner", "allowed"), [(20, 27, True), (20, 28, False), (0, 47, True), (45, 45, False)]
)  # fmt: skip
def test_the_nesting_limit_does_not_depend_on_the_order_of_fragments(
    ask, order, outer, inner, allowed
):
    fragments = [
        f"fragment A on Book {{ {inline(outer, '...B')} }}",
        f"fragment B on Book {{ {inline(inner, 'id')} }}",
    ]
    if order == "last":
        fragments.reverse()
    for text in (
        " ".join(["{ getBookById(id: 1) { ...A } }", *fragments]),
        " ".join([*fragments, "{ getBookById(id: 1) { ...A } }"]),
        " ".join(["{ getBookById(id: 1) { ...B ...A } }", *fragments]),
    ):
        answer = ask(text)
        assert ("errors" not in answer) is allowed, answer
        if not allowed:
            assert answer["errors"][0]["extensions"]["limit"] == "nesting"


DIGITS = "1" * 5_000


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (f"{{ getAuthorById(id: {DIGITS}) {{ id }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ getAuthorById(id: -{DIGITS}) {{ id }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"query ($i: Int = {DIGITS}) {{ getAuthorById(id: $i) {{ id }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ books(first: {DIGITS}) {{ totalCount }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ books(filter: {{minPageCount: {DIGITS}}}) {{ totalCount }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f'mutation {{ addBook(book: {{name: "x", pageCount: {DIGITS}, authorId: 1}}) {{ id }} }}', "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ getAuthorById(id: {DIGITS}.5e5) {{ id }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ searchBooks(title: {DIGITS}) {{ id }} }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ __typename @skip(if: {DIGITS}) }}", "GRAPHQL_VALIDATION_FAILED"),
        (f"{{ getBookById(id: {DIGITS}) {{ id }} }}", None),
    ],
)  # fmt: skip
def test_a_number_of_thousands_of_digits_is_bad_input(ask, query, code):
    with capture_logs() as logs:
        answer = ask(query)
    codes = [error["extensions"]["code"] for error in answer.get("errors", [])]
    assert codes == ([code] if code else [])
    assert all("Internal" not in error["message"] for error in answer.get("errors", []))
    assert not [line for line in logs if line["log_level"] == "error"]


@pytest.mark.parametrize(
    "query",
    [
        "{" * 900,
        "{ a(b: " + "[" * 900,
        "{ getAllBooks { ...A } } fragment A on Book { author { books { ...A } } }",
        "{ getAllBooks { ...A } } fragment A on Book { ...B } fragment B on Book { ...A }",
        "{ getAllBooks { ...Missing } }",
        "{ " + "x" * 50_000 + " }",
        "query ($a: " + "[" * 800 + "Int" + "]" * 800 + ") { __typename }",
        "type Query { a: Int }",
        "subscription { a }",
        "{ getAllBooks }",
        "{ __typename { a } }",
        "\0",
        "\ufeff",
    ],
)
def test_nonsense_is_a_clear_error(ask, query):
    answer = ask(query)
    assert {error["extensions"]["code"] for error in answer["errors"]} <= {
        "GRAPHQL_PARSE_FAILED",
        "GRAPHQL_VALIDATION_FAILED",
        "OPERATION_RESOLUTION_FAILURE",
        "QUERY_TOO_COMPLEX",
    }
    assert all(len(error["message"]) <= 1_000 for error in answer["errors"])
    assert "data" not in answer


@pytest.mark.parametrize(
    "query",
    [
        chain(7),
        "{ getAllBooks { " + " ".join(f"a{n}: id" for n in range(30)) + " } }",
        "{ " + "getBookById(id: 1) { id } " * 20 + "}",
        "{ __typename " + "@skip(if: false) @include(if: true)" + " }",
        get_introspection_query(),
        get_introspection_query(
            specified_by_url=True, directive_is_repeatable=True, schema_description=True
        ),
        "{ getAllBooks { ...F0 } } "
        + " ".join(f"fragment F{n} on Book {{ ...F{n + 1} ...F{n + 1} }}" for n in range(8))
        + " fragment F8 on Book { id }",
    ],
)  # fmt: skip
def test_what_is_within_the_limits_is_answered(ask, query):
    assert "errors" not in ask(query)


def test_introspection_can_be_switched_off_but_not_typename(ask, settings):
    settings.CATALOG_INTROSPECTION = False
    for query in (
        "{ __schema { description } }",
        '{ a: __type(name: "Book") { name } }',
    ):
        [error] = ask(query)["errors"]
        assert error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        assert error["message"] == "Introspection is switched off."
    assert ask("{ kind: __typename }") == {"data": {"kind": "Query"}}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "query",
    [
        "{ getAllBook { id } }",
        "{ getAllBooks { nam } }",
        "{ getAllBooks }",
        "{ books(filtr: {}) { totalCount } }",
        "{ books(filter: {titel: 1}) { totalCount } }",
        "{ books(orderBy: NAME_AS) { totalCount } }",
        "query ($f: BookFilter = {titel: 1}) { books(filter: $f) { totalCount } }",
        "query ($f: BookFilte) { books(filter: $f) { totalCount } }",
        "{ getAllBooks { id @includ(if: true) @include(iff: true) } }",
    ],
)
def test_suggestions_can_be_switched_off(ask, settings, on, query):
    settings.CATALOG_SUGGESTIONS = on
    messages = [error["message"] for error in ask(query)["errors"]]
    assert any("Did you mean" in message for message in messages) is on
    assert all(message.endswith((".", "?")) for message in messages)


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("query ($v: BookFilter) { books(filter: $v) { totalCount } }", {"titel": "a"}),
        ("query ($v: BookOrder) { books(orderBy: $v) { totalCount } }", "NAME_ASCC"),
        ("mutation ($v: AuthorInput!) { addAuthor(author: $v) { id } }", {"firstNam": 1}),
    ],
)  # fmt: skip
def test_no_error_of_a_variable_suggests_a_name(ask, settings, on, query, value):
    settings.CATALOG_SUGGESTIONS = on
    answer = ask(query, v=value)
    assert {error["extensions"]["code"] for error in answer["errors"]} == {
        "BAD_USER_INPUT"
    }
    assert "Did you mean" not in str(answer)


def unknown_keys(count):
    return {f"unknown{number}": number for number in range(count)}


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query ($v: BookFilter) { books(filter: $v) { totalCount } }", lambda n: {"v": unknown_keys(n)}),
        ("mutation ($v: BookInput!) { addBook(book: $v) { id } }", lambda n: {"v": unknown_keys(n)}),
        ("query ($v: BookFilter!) { __typename books(filter: $v) { nodes { id } } }", lambda n: {"v": {"title": unknown_keys(n), **unknown_keys(n)}}),
        ("query ($v: Int) { getAuthorById(id: $v) { id } }", lambda n: {"v": [unknown_keys(1)] * n}),
        ("query ($v: BookOrder) { books(orderBy: $v) { totalCount } }", lambda n: {"v": "A" * n}),
        ("query ($v: ID!) { getBookById(id: $v) { id } }", lambda n: {"v": unknown_keys(n)}),
    ],
)  # fmt: skip
def test_wrong_variables_cost_the_same_for_any_number_of_faults(ask, query, variables):
    def calls(count):
        """Return how many functions an answer calls, and its errors."""
        called = 0

        def count_call(_frame: object, event: str, _argument: object) -> None:
            nonlocal called
            called += event == "call"

        request = GraphQLRequest(query, None, variables(count))
        sys.setprofile(count_call)
        try:
            body = executor.answer(request, Context()).body
        finally:
            sys.setprofile(None)
        return called, body["errors"]

    calls(1_000)  # from here on the document is in the cache
    few, few_errors = calls(1_000)
    many, errors = calls(4_000)
    assert len(errors) == len(few_errors) <= 21
    assert many <= 1.1 * few


def test_the_cache_holds_as_many_documents_as_their_lengths_allow():
    documents = Documents(schema.graphql_schema, most_characters=100)
    texts = [f"{{ a{n}: __typename }}" for n in range(20)]
    first = documents.get(texts[0])
    assert documents.get(texts[0]) is first
    for text in texts:
        documents.get(text)
    assert documents.characters == sum(map(len, documents.kept)) <= 100
    assert list(documents.kept) == texts[-len(documents.kept) :]
    assert documents.get(texts[0]) is not first


def test_the_cache_counts_the_plans_of_its_documents(db):
    """Its memory stays below 300 bytes for each character of the limit."""
    names = [f"v{n}" for n in range(3)]
    declared = ", ".join(f"${name}: Boolean!" for name in names)
    below = " ".join(f"... @include(if: ${name}) {{ id }}" for name in names)
    fields = " ".join(f"b{n}: getAllBooks {{ ...F }}" for n in range(5))
    query = f"""query ({declared}) {{ {fields} }} fragment F on Book {{
        author {{ {below} books {{ author {{ id bookCount }} }} }} }} #"""
    executor = Executor(schema.graphql_schema)
    documents = Documents(schema.graphql_schema, most_characters=10_000)
    executor.documents = documents
    tracemalloc.start()
    try:
        for number in range(4):
            for bits in range(8):
                values = {name: bool(bits >> n & 1) for n, name in enumerate(names)}
                request = GraphQLRequest(f"{query}{number}", variables=values)
                assert "errors" not in executor.answer(request, Context()).body
                assert documents.characters <= 10_000
        memory, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (
        list(documents.kept)
        == [f"{query}{n}" for n in range(4)][-len(documents.kept) :]
    )
    assert documents.kept
    assert memory < 10_000 * 300


def test_a_document_that_two_threads_prepare_at_once_is_counted_once(monkeypatch):
    cache, text = Documents(schema.graphql_schema), "{ __typename }"

    def overtaken(*arguments: Any):
        monkeypatch.undo()
        cache.get(text)  # the other thread was quicker
        return prepare(*arguments)

    monkeypatch.setattr("catalog.execution.documents.prepare", overtaken)
    assert cache.get(text) is cache.get(text)
    assert cache.characters == len(text)


def test_what_is_refused_is_not_kept():
    documents = Documents(schema.graphql_schema)
    for text in ("{", "{ nothing }", BOMB):
        with pytest.raises(Exception, match=r".*"):
            documents.get(text)
    assert not documents.kept


def test_a_document_keeps_a_bounded_number_of_plans(ask):
    names = [f"v{n}" for n in range(6)]
    declared = ", ".join(f"${name}: Boolean!" for name in names)
    fields = " ".join(f"{name}: id @include(if: ${name})" for name in names)
    text = f"query ({declared}) {{ getAllBooks {{ {fields} }} }}"
    documents = Documents(schema.graphql_schema)
    document = documents.get(text)
    operation = get_operation_ast(document.ast)
    assert operation is not None
    for number in range(64):
        values = {name: bool(number >> place & 1) for place, name in enumerate(names)}
        assert document.plan(operation, values) is not None
        assert len(document.plans) <= 16
