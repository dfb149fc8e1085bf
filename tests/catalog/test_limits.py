import pytest
from graphql import get_introspection_query
from structlog.testing import capture_logs

from catalog.execution import columns
from catalog.execution.documents import Documents
from catalog.models import Book
from catalog.schema import schema
from tests.catalog.factories import BookFactory, CategoryFactory

pytestmark = pytest.mark.django_db


def chain(depth):
    """Return a query this many fields deep."""
    steps = ["getAllBooks", *(["author", "books"] * depth)][: depth - 1]
    return "{ " + " { ".join([*steps, "id"]) + " }" * depth


def inline(levels, leaf):
    return "... { " * levels + leaf + " }" * levels


BOMB = "{ getBookById(id: 1) { ...F0 } } " + " ".join(
    f"fragment F{n} on Book {{ ...F{n + 1} ...F{n + 1} }}" for n in range(40)
) + " fragment F40 on Book { id name }"  # fmt: skip

LADDER = "{ getAllBooks { ...B0 } }" + "".join(
    f"fragment B{n} on Book {{ author {{ ...A{n} }} }}"
    f"fragment A{n} on Author {{ books {{ ...B{n + 1} }} }}"
    for n in range(6)
) + " fragment B6 on Book { id }"  # fmt: skip

ABUSES = {
    "a fragment bomb": (BOMB, "expanded fields"),
    "a hundred thousand braces": ("{ a" * 100_000, "characters"),
    "many braces": ("{a" * 45_000, "nesting"),
    "many brackets": ("{ a(b: " + "[" * 90_000, "nesting"),
    "a string of 500 KB": ('{ searchBooks(title: "' + "x" * 500_000 + '") { id } }', "characters"),
    "forty thousand comments": ("#\n" * 40_000 + "{ __typename }", "tokens"),
    "too many tokens": ("{ " + "a " * 2_000 + "}", "tokens"),
    "thirteen levels": (chain(13), "depth"),
    "levels in fragments": (LADDER, "depth"),
    "a field named two hundred times": ("{ getAllBooks { " + "id " * 200 + "} }", "repeated fields"),
    "two hundred inline fragments": ("{ getAllBooks { " + "... { id } " * 200 + "} }", "repeated fields"),
    "repeats that no operation spreads": ("{ __typename } fragment A on Book { " + "id " * 200 + "}", "repeated fields"),
    "sixty inline fragments": ("{ getBookById(id: 1) { " + inline(60, "id") + " } }", "nesting"),
    "objects beside their fields": ("{ " + " ".join(f"b{n}: getAllBooks {{ ...A }}" for n in range(60)) + " } fragment A on Book { " + " ".join(f"a{n}: author {{ id }}" for n in range(50)) + " }", "expanded fields"),
    "introspection that multiplies": ("{ __schema { types { " + "fields { type { " * 4 + "name" + " } }" * 4 + " } } }", "expanded fields"),
    "introspection again and again": ("{ " + " ".join(f"a{n}: __schema {{ ...F }}" for n in range(50)) + " } fragment F on __Schema { types { fields { type { fields { name } } } } }", "expanded fields"),
    "introspection beyond its depth": ("{ __schema { queryType { " + "ofType { " * 20 + "name" + " }" * 20 + " } } }", "depth"),
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
    answer = ask(" ".join(["{ getBookById(id: 1) { ...A } }", *fragments]))
    assert ("errors" not in answer) is allowed, answer


@pytest.mark.parametrize(
    "query",
    [
        chain(12),
        "{ getAllBooks { " + " ".join(f"a{n}: id" for n in range(400)) + " } }",
        "{ " + "a: getBookById(id: 1) { id } " * 100 + "}",
        get_introspection_query(
            specified_by_url=True, directive_is_repeatable=True, schema_description=True
        ),
        "{ getAllBooks { ...F0 } }"
        + "".join(f"fragment F{n} on Book {{ ...F{n + 1} ...F{n + 1} }}" for n in range(8))
        + "fragment F8 on Book { id }",
    ],
)  # fmt: skip
def test_what_is_within_the_limits_is_answered(ask, query):
    assert "errors" not in ask(query)


@pytest.mark.parametrize(
    "query",
    [
        "{" * 900,
        "{ a(b: " + "[" * 900,
        "{ getAllBooks { ...A } } fragment A on Book { author { books { ...A } } }",
        "{ getAllBooks { ...A } } fragment A on Book { ...B } fragment B on Book { ...A }",
        "{ getAllBooks { ...Missing } }",
        "query ($a: " + "[" * 800 + "Int" + "]" * 800 + ") { __typename }",
        "subscription { a }",
        "{ getAllBooks }",
        "\0",
        f"{{ getAuthorById(id: {'1' * 5_000}) {{ id }} }}",
        f"query ($i: Int = -{'1' * 5_000}) {{ getAuthorById(id: $i) {{ id }} }}",
    ],
)
def test_nonsense_is_a_clear_error(ask, query):
    with capture_logs() as logs:
        answer = ask(query)
    assert {error["extensions"]["code"] for error in answer["errors"]} <= {
        "GRAPHQL_PARSE_FAILED",
        "GRAPHQL_VALIDATION_FAILED",
        "OPERATION_RESOLUTION_FAILURE",
        "QUERY_TOO_COMPLEX",
    }
    assert all(len(error["message"]) <= 1_000 for error in answer["errors"])
    assert "data" not in answer
    assert not [line for line in logs if line["log_level"] == "error"]


def test_the_errors_of_variables_are_few_and_suggest_no_name(ask):
    query = "mutation ($v: BookInput!) { addBook(book: $v) { id } }"
    errors = ask(query, v={f"nam{n}": n for n in range(1_000)})["errors"]
    assert len(errors) <= 21
    assert "Did you mean" not in str(errors)


# ── The answer ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("{ getAllBooks { id } }", 6),
        ("{ getAllBooks { author { bookCount } } }", 6),
        ("{ a: getAllBooks { id } b: books { id } }", 12),
        ("{ getAllAuthors { books { id } } }", 3 + 6),
        ("{ getAllCategories { a: books { id } b: books { author { books { id } } } } }", 2 + 4 + 4 + 6),
        ('{ searchBooks(title: "alpha") { id } }', 3),
        ("{ getBookById(id: 1) { author { books { id } } } }", 1 + 3),
        ('mutation { updateAuthor(id: 1, author: {firstName: "A", lastName: "B"}) { books { id } } }', 1 + 3),
    ],
)  # fmt: skip
def test_every_form_of_query_counts_its_rows(ask, shelf, settings, query, rows):
    settings.CATALOG_ROW_BUDGET = rows
    assert "errors" not in ask(query)
    settings.CATALOG_ROW_BUDGET = rows - 1
    [error] = ask(query)["errors"]
    assert error["extensions"] == {"code": "RESULT_TOO_LARGE", "limit": rows - 1}
    assert "ask for less" in error["message"]


def test_an_answer_that_is_too_large_undoes_its_change(ask, shelf, settings):
    settings.CATALOG_ROW_BUDGET = 4
    book = '{name: "New", pageCount: 1, authorId: 1}'
    change = f"mutation {{ addBook(book: {book}) {{ author {{ books {{ id }} }} }} }}"
    assert ask(change)["data"] == {"addBook": None}
    assert Book.objects.count() == 6


@pytest.mark.parametrize(
    "query",
    [
        "{ getAllCategories { %s } }",
        "{ getAllBooks { category { %s } } }",
        "{ getAllAuthors { books { category { %s } } } }",
        "{ getAllCategories { books { category { %s } } } }",
        '{ searchBooks(title: "b") { name category { ... { %s } } } }',
        "{ getBookById(id: %d) { category { %s books { category { %s } } } } }",
    ],
)
def test_a_long_text_cannot_be_multiplied_without_bound(ask, monkeypatch, query):
    monkeypatch.setattr(columns, "MOST_BYTES", 100_000)
    category = CategoryFactory.create(description="x" * 1_000)
    book, _ = BookFactory.create_batch(2, name="b", category=category)
    for aliases, refused in ((2, False), (100, True)):
        fields = " ".join(f"d{n}: description" for n in range(aliases))
        answer = ask(query.replace("%s", fields).replace("%d", str(book.pk)))
        assert ("errors" in answer) is refused
        if refused:
            assert answer["errors"][0]["extensions"] == {
                "code": "RESULT_TOO_LARGE",
                "limit": 100_000,
            }


def test_values_without_text_are_counted_before_they_are_made(ask, monkeypatch, shelf):
    monkeypatch.setattr(columns, "MOST_BYTES", 6 * 100 * 11)
    for aliases, refused in ((99, False), (101, True)):
        fields = " ".join(f"i{n % 10}{n // 10}: id" for n in range(aliases))
        assert ("errors" in ask(f"{{ getAllBooks {{ {fields} }} }}")) is refused


def test_statements_are_counted(ask, monkeypatch, shelf):
    monkeypatch.setattr(columns, "MOST_STATEMENTS", 2)
    assert "errors" not in ask("{ getAllAuthors { books { id } } }")
    [error] = ask("{ getAllAuthors { books { id } a: books { id } } }")["errors"]
    assert error["extensions"]["limit"] == "statements"


def test_no_statement_begins_after_the_time_of_a_request(ask, settings, shelf):
    settings.WEB_STATEMENT_TIMEOUT_S = 0
    [error] = ask("{ getAllBooks { id } }")["errors"]
    assert error["extensions"] == {"code": "RESULT_TOO_LARGE", "limit": 0}


# ── The cache of documents ─────────────────────────────────────────────────────────────


def test_the_cache_holds_as_many_documents_as_their_lengths_allow():
    documents = Documents(schema.graphql_schema, most_characters=100)
    texts = [f"{{ a{n}: __typename }}" for n in range(20)]
    first = documents.get(texts[0])
    assert documents.get(texts[0]) is first
    for text in texts:
        documents.get(text)
    assert sum(map(len, documents.kept)) + documents.characters_left == 100
    assert list(documents.kept) == texts[-len(documents.kept) :]
    assert documents.get(texts[0]) is not first
