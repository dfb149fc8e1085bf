import pytest

from catalog.models import Author, Book
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory

pytestmark = pytest.mark.django_db

BOOK = "{ id name pageCount author { id firstName lastName } category { id name description } }"


def answered(book):
    """Return a book as the contract answers it."""
    author, category = book.author, book.category
    names = {"firstName": author.first_name, "lastName": author.last_name}
    return {
        "id": str(book.pk),
        "name": book.name,
        "pageCount": book.page_count,
        "author": {"id": str(author.pk), **names},
        "category": category
        and {
            "id": str(category.pk),
            "name": category.name,
            "description": category.description,
        },
    }


@pytest.fixture
def books():
    category = CategoryFactory.create(description="Made up")
    return [
        BookFactory.create(category=category),
        BookFactory.create(),
        BookFactory.create(page_count=0),
    ]


@pytest.mark.spec("catalog", "getAllBooks")
def test_all_books_come_by_id_with_author_and_category(ask, books):
    answer = ask(f"{{ getAllBooks {BOOK} }}")
    assert answer == {"data": {"getAllBooks": [answered(book) for book in books]}}


@pytest.mark.spec("catalog", "getBookById")
def test_a_book_is_found_by_its_id(ask, books):
    query = f"query ($id: ID!) {{ getBookById(id: $id) {BOOK} }}"
    assert ask(query, id=str(books[1].pk))["data"]["getBookById"] == answered(books[1])
    assert ask(query, id=books[0].pk)["data"]["getBookById"] == answered(books[0])


@pytest.mark.parametrize(
    "identifier",
    [
        "0", "-1", "01", " 1", "1 ", "+1", "1.0", "1e3", "x", "", "1_0", "\u0661", "\0", "½",
        "9223372036854775807", "9223372036854775808", "9" * 19, "9" * 5000, "NaN",
    ],
)  # fmt: skip
def test_a_malformed_id_is_an_absent_one(ask, identifier):
    CategoryFactory.create()
    AuthorFactory.create()
    query = "query ($id: ID!) { getBookById(id: $id) { id } getCategoryById(id: $id) { id } }"
    assert ask(query, id=identifier) == {
        "data": {"getBookById": None, "getCategoryById": None}
    }
    changes = "mutation ($id: ID!) { deleteBook(id: $id) deleteAuthor(id: $id) }"
    assert ask(changes, id=identifier) == {
        "data": {"deleteBook": False, "deleteAuthor": False}
    }


@pytest.mark.spec("catalog", "getBookByName")
def test_a_book_is_found_by_its_whole_name_without_letter_case(ask):
    first, _ = (
        BookFactory.create(name="Die ÄRZTE"),
        BookFactory.create(name="die ärzte"),
    )
    query = "query ($name: String) { getBookByName(name: $name) { id } }"
    assert ask(query, name="Die ärzte")["data"]["getBookByName"] == {
        "id": str(first.pk)
    }
    for name in ("die", " die ärzte", "", "\0", None):
        assert ask(query, name=name) == {"data": {"getBookByName": None}}
    assert ask("{ getBookByName { id } }") == {"data": {"getBookByName": None}}


@pytest.mark.spec("catalog", "getAuthorById")
def test_an_author_is_found_by_an_int(ask):
    author = AuthorFactory.create()
    books = BookFactory.create_batch(2, author=author)
    query = "query ($id: Int) { getAuthorById(id: $id) { id bookCount books { id } } }"
    assert ask(query, id=author.pk)["data"]["getAuthorById"] == {
        "id": str(author.pk),
        "bookCount": 2,
        "books": [{"id": str(book.pk)} for book in books],
    }
    for absent in (0, -5, 2**31 - 1, None):
        assert ask(query, id=absent) == {"data": {"getAuthorById": None}}
    assert ask("{ getAuthorById { id } }") == {"data": {"getAuthorById": None}}


def test_an_author_id_beyond_an_int_is_bad_input(ask):
    answer = ask("query ($id: Int) { getAuthorById(id: $id) { id } }", id=2**31)
    assert answer["errors"][0]["extensions"] == {"code": "BAD_USER_INPUT"}
    assert "data" not in answer


@pytest.mark.spec("catalog", "getAllAuthors")
@pytest.mark.spec("catalog", "authors and categories list their books")
def test_all_authors_come_by_id_with_their_books(ask):
    silent, author = AuthorFactory.create(), AuthorFactory.create()
    book = BookFactory.create(author=author)
    answer = ask("{ getAllAuthors { id bookCount books { id author { bookCount } } } }")
    assert answer["data"]["getAllAuthors"] == [
        {"id": str(silent.pk), "bookCount": 0, "books": []},
        {
            "id": str(author.pk),
            "bookCount": 1,
            "books": [{"id": str(book.pk), "author": {"bookCount": 1}}],
        },
    ]


@pytest.mark.spec("catalog", "getAllCategories, getCategoryById")
def test_categories_come_with_their_books(ask):
    category = CategoryFactory.create(description=None)
    book = BookFactory.create(category=category)
    expected = {
        "id": str(category.pk),
        "name": category.name,
        "description": None,
        "books": [{"id": str(book.pk)}],
    }
    fields = "{ id name description books { id } }"
    assert ask(f"{{ getAllCategories {fields} }}")["data"]["getAllCategories"] == [
        expected
    ]
    answer = ask(f"{{ getCategoryById(id: {category.pk}) {fields} }}")
    assert answer["data"]["getCategoryById"] == expected


@pytest.mark.spec("catalog", "searchBooks")
def test_a_search_answers_in_code_point_order_of_the_name_then_by_id(ask):
    names = ["ab z", "Zab", "ab", "éab", "ab", "Ab", "😀ab", "Äab", "\uffeeab"]
    books = [BookFactory.create(name=name) for name in names]
    answer = ask('{ searchBooks(title: "AB") { id name } }')
    expected = sorted(books, key=lambda book: (book.name, book.pk))
    assert answer["data"]["searchBooks"] == [
        {"id": str(book.pk), "name": book.name} for book in expected
    ]


@pytest.mark.parametrize(
    "selections",
    [
        "getAllBooks { author { id @include(if: $c) } }",
        "getAllBooks @skip(if: $c) { id }",
        "getBookById(id: 999) { ... @include(if: $c) { id } }",
        "getAllBooks { ...F } } fragment F on Book { author { id @skip(if: $c) } ",
        "__schema { types { name @include(if: $c) } }",
    ],
)
def test_a_null_condition_is_one_error_before_anything_is_read(
    ask, books, selections, django_assert_num_queries
):
    query = f"query ($c: Boolean = true) {{ {selections} }}"
    with django_assert_num_queries(0):
        answer = ask(query, c=None)
    [error] = answer["errors"]
    assert error["message"].endswith("type 'Boolean!' must not be null.")
    assert error["extensions"] == {"code": "BAD_USER_INPUT"}
    assert "data" not in answer
    assert ask(query)["data"] is not None  # the default


@pytest.mark.parametrize(
    ("query", "exactly"),
    [
        ("{ getAllBooks { name author { firstName } category { name } } }", 1),
        ("{ getAllBooks { author { bookCount books { category { name } } } } }", 2),
        ("{ getAllAuthors { bookCount } }", 2),
        ("{ getAllAuthors { bookCount books { author { books { id } } } } }", 3),
        ('{ searchBooks(title: "o") { author { books { id } } } }', 2),
        ("{ getAllCategories { books { author { lastName } } } }", 2),
    ],
)  # fmt: skip
def test_the_number_of_queries_does_not_grow_with_the_rows(
    ask, query, exactly, django_assert_num_queries
):
    category = CategoryFactory.create()
    BookFactory.create_batch(9, category=category)
    with django_assert_num_queries(exactly):
        assert "errors" not in ask(query)
    authors = [Author(first_name="A", last_name="B") for _ in range(990)]
    Book.objects.bulk_create(
        Book(name="o", page_count=1, author=author, category=category)
        for author in Author.objects.bulk_create(authors)
    )
    with django_assert_num_queries(exactly):
        assert "errors" not in ask(query)
