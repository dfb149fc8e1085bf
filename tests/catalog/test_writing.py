import pytest
from django.db import IntegrityError, transaction

from catalog.models import Author, Book, Category
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory

pytestmark = pytest.mark.django_db

ADD = "mutation ($book: BookInput!) { addBook(book: $book) { id name pageCount author { id } category { id } } }"
UPDATE = "mutation ($id: ID!, $book: BookInput!) { updateBook(id: $id, book: $book) { id name pageCount category { id } author { bookCount books { name } } } }"
DELETE = "mutation ($id: ID!) { deleteBook(id: $id) }"
ADD_AUTHOR = "mutation ($author: AuthorInput!) { addAuthor(author: $author) { id firstName lastName bookCount books { id } } }"
UPDATE_AUTHOR = "mutation ($id: ID!, $author: AuthorInput!) { updateAuthor(id: $id, author: $author) { id firstName lastName } }"
DELETE_AUTHOR = "mutation ($id: ID!) { deleteAuthor(id: $id) }"
ADD_CATEGORY = "mutation ($category: CategoryInput!) { addCategory(category: $category) { id name description books { id } } }"


def draft(**fields):
    return {"name": "Emma", "pageCount": 474, "authorId": 1, **fields}


@pytest.mark.spec("catalog", "addBook")
@pytest.mark.spec("catalog", "a book has an author and perhaps a category")
def test_a_book_is_added_and_answered(ask):
    author, category = AuthorFactory.create(), CategoryFactory.create()
    book = draft(authorId=author.pk, categoryId=category.pk, name="  Emma ")
    answer = ask(ADD, book=book)["data"]["addBook"]
    row = Book.objects.get()
    assert answer == {
        "id": str(row.pk),
        "name": "  Emma ",
        "pageCount": 474,
        "author": {"id": str(author.pk)},
        "category": {"id": str(category.pk)},
    }
    assert (row.name, row.name_folded, row.category) == ("  Emma ", "  emma ", category)


@pytest.mark.parametrize(
    ("_case", "fields", "code", "field"),
    [
        ("an empty name", {"name": ""}, "BAD_USER_INPUT", "name"),
        ("a blank name", {"name": " \t\u2003\n"}, "BAD_USER_INPUT", "name"),
        ("a long name", {"name": "x" * 256}, "BAD_USER_INPUT", "name"),
        ("NUL in the name", {"name": "a\0b"}, "BAD_USER_INPUT", "name"),
        ("negative pages", {"pageCount": -1}, "BAD_USER_INPUT", "pageCount"),
        ("an unknown author", {"authorId": 999}, "NOT_FOUND", "authorId"),
        ("author zero", {"authorId": 0}, "NOT_FOUND", "authorId"),
        ("a negative author", {"authorId": -1}, "NOT_FOUND", "authorId"),
        ("an unknown category", {"categoryId": 999}, "NOT_FOUND", "categoryId"),
        ("category zero", {"categoryId": 0}, "NOT_FOUND", "categoryId"),
    ],
)
def test_a_bad_book_is_refused_and_nothing_is_written(
    refused, _case, fields, code, field
):
    book = BookFactory.create()
    bad = draft(authorId=book.author.pk) | fields
    before = list(Book.objects.values())
    assert refused(ADD, book=bad) == {"code": code, "field": field}
    assert refused(UPDATE, id=book.pk, book=bad) == {"code": code, "field": field}
    assert list(Book.objects.values()) == before


@pytest.mark.parametrize(
    "book",
    [
        {},
        {"name": "x", "pageCount": 1},
        {"name": None, "pageCount": 1, "authorId": 1},
        {"name": 5, "pageCount": 1, "authorId": 1},
        {"name": "x", "pageCount": 1.5, "authorId": 1},
        {"name": "x", "pageCount": 2**31, "authorId": 1},
        {"name": "x", "pageCount": True, "authorId": 1},
        {"name": "x", "pageCount": 1, "authorId": "1"},
        {"name": "x", "pageCount": 1, "authorId": 1, "colour": "red"},
        None,
        "x",
    ],
)
def test_a_book_of_another_shape_is_bad_input(ask, book):
    AuthorFactory.create()
    answer = ask(ADD, book=book)
    assert {error["extensions"]["code"] for error in answer["errors"]} == {
        "BAD_USER_INPUT"
    }
    assert "data" not in answer
    assert not Book.objects.exists()


def test_the_largest_and_the_smallest_book_are_stored(ask):
    author = AuthorFactory.create()
    for name, pages in (("😀" * 255, 2**31 - 1), ("x", 0), ("İΐﬃ" * 85, 1)):
        answer = ask(ADD, book=draft(authorId=author.pk, name=name, pageCount=pages))
        assert answer["data"]["addBook"]["name"] == name
        assert answer["data"]["addBook"]["pageCount"] == pages


@pytest.mark.spec("catalog", "updateBook")
def test_an_update_replaces_every_field_and_clears_an_omitted_category(ask):
    book = BookFactory.create(category=CategoryFactory.create(), name="Old")
    other = AuthorFactory.create()
    new = draft(authorId=other.pk, name="New Name")
    answer = ask(UPDATE, id=book.pk, book=new)["data"]["updateBook"]
    assert answer == {
        "id": str(book.pk),
        "name": "New Name",
        "pageCount": 474,
        "category": None,
        "author": {"bookCount": 1, "books": [{"name": "New Name"}]},
    }
    assert list(Book.objects.search("new n")) == [book]
    assert list(Book.objects.search("old")) == []
    category = CategoryFactory.create()
    for category_id, expected in (
        (category.pk, {"id": str(category.pk)}),
        (None, None),
    ):
        answer = ask(UPDATE, id=book.pk, book=new | {"categoryId": category_id})
        assert answer["data"]["updateBook"]["category"] == expected


@pytest.mark.parametrize("identifier", ["999", "0", "x", "", "9" * 30])
def test_an_update_of_an_absent_record_is_not_found(refused, identifier):
    author = AuthorFactory.create()
    expected = {"code": "NOT_FOUND", "field": "id"}
    assert refused(UPDATE, id=identifier, book=draft(authorId=author.pk)) == expected
    names = {"firstName": "A", "lastName": "B"}
    assert refused(UPDATE_AUTHOR, id=identifier, author=names) == expected


@pytest.mark.spec("catalog", "deleteBook")
def test_a_deleted_book_is_gone_and_a_second_deletion_answers_false(ask):
    book = BookFactory.create()
    assert ask(DELETE, id=book.pk) == {"data": {"deleteBook": True}}
    assert ask(DELETE, id=book.pk) == {"data": {"deleteBook": False}}
    assert not Book.objects.exists()


@pytest.mark.spec("catalog", "addAuthor, updateAuthor")
def test_an_author_is_added_and_renamed(ask):
    names = {"firstName": "Jane", "lastName": "Austen"}
    added = ask(ADD_AUTHOR, author=names)["data"]["addAuthor"]
    assert added == {"id": added["id"], **names, "bookCount": 0, "books": []}
    new = {"firstName": "J.", "lastName": "ÄUSTEN"}
    answer = ask(UPDATE_AUTHOR, id=added["id"], author=new)
    assert answer["data"]["updateAuthor"] == {"id": added["id"], **new}
    assert Author.objects.filter(first_name="J.", last_name="ÄUSTEN").count() == 1


@pytest.mark.parametrize("field", ["firstName", "lastName"])
@pytest.mark.parametrize("value", ["", " ", "x" * 256, "\0"])
def test_a_bad_author_is_refused_and_nothing_is_written(refused, field, value):
    author = AuthorFactory.create()
    names = {"firstName": "A", "lastName": "B"} | {field: value}
    expected = {"code": "BAD_USER_INPUT", "field": field}
    assert refused(ADD_AUTHOR, author=names) == expected
    assert refused(UPDATE_AUTHOR, id=author.pk, author=names) == expected
    assert list(Author.objects.values_list("first_name")) == [(author.first_name,)]


@pytest.mark.spec("catalog", "deleteAuthor")
def test_an_author_with_books_is_not_deleted(ask, refused):
    author = AuthorFactory.create()
    BookFactory.create_batch(2, author=author)
    assert refused(DELETE_AUTHOR, id=author.pk) == {
        "code": "AUTHOR_HAS_BOOKS",
        "bookCount": 2,
    }
    assert (Author.objects.count(), Book.objects.count()) == (1, 2)
    Book.objects.all().delete()
    assert ask(DELETE_AUTHOR, id=author.pk) == {"data": {"deleteAuthor": True}}
    assert ask(DELETE_AUTHOR, id=author.pk) == {"data": {"deleteAuthor": False}}


@pytest.mark.spec("catalog", "addCategory")
@pytest.mark.parametrize("description", [None, "", "  as it came ", "x" * 10_000])
def test_a_category_is_added_as_it_came(ask, description):
    category = {"name": " Novel", "description": description}
    added = ask(ADD_CATEGORY, category=category)["data"]["addCategory"]
    assert added == {"id": added["id"], **category, "books": []}
    assert "errors" not in ask(ADD_CATEGORY, category={"name": "Poem"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 256),
        ("name", "\0"),
        ("description", "\0"),
        ("description", "x" * 10_001),
    ],
)
def test_a_bad_category_is_refused_and_nothing_is_written(refused, field, value):
    category = {"name": "Novel", field: value}
    expected = {"code": "BAD_USER_INPUT", "field": field}
    assert refused(ADD_CATEGORY, category=category) == expected
    assert not Category.objects.exists()


def test_mutations_run_in_order_and_each_keeps_its_own_transaction(ask):
    author = AuthorFactory.create()
    answer = ask(
        """mutation ($a: Int!) {
        one: addBook(book: {name: "One", pageCount: 1, authorId: $a}) { id }
        two: addBook(book: {name: "", pageCount: 1, authorId: $a}) { id }
        three: deleteAuthor(id: 999)
        four: addBook(book: {name: "Four", pageCount: 1, authorId: $a}) { author { bookCount } }
        }""",
        a=author.pk,
    )
    assert answer["data"]["two"] is None
    assert answer["data"]["three"] is False
    assert answer["data"]["four"] == {"author": {"bookCount": 2}}
    assert [error["path"] for error in answer["errors"]] == [["two"]]


@pytest.mark.parametrize(
    "change",
    [
        "addBook(book: $book) { id name @include(if: $c) }",
        "addBook(book: $book) { id } deleteBook(id: 1) @skip(if: $c)",
        "deleteBook(id: 1) addBook(book: $book) { author { id @skip(if: $c) } }",
    ],
)
def test_a_null_condition_is_one_error_and_nothing_is_written(ask, change):
    book = BookFactory.create(id=1)
    before = list(Book.objects.values())
    query = f"mutation ($book: BookInput!, $c: Boolean = true) {{ {change} }}"
    answer = ask(query, book=draft(authorId=book.author.pk), c=None)
    [error] = answer["errors"]
    assert error["extensions"] == {"code": "BAD_USER_INPUT"}
    assert "data" not in answer
    assert list(Book.objects.values()) == before


def test_a_negative_page_count_is_refused_by_the_database_too():
    author = AuthorFactory.create()
    with pytest.raises(IntegrityError), transaction.atomic():
        Book.objects.create(name="x", page_count=-1, author=author)
