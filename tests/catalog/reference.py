"""The catalogue once more, naively: graphql-core over the published SDL, a resolver per field.

It shares the models' tables and the SDL with the product, and nothing else. It reads whole
tables, sorts and filters in Python, and counts the rows that it answers.
"""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    execute_sync,
    get_operation_ast,
    parse,
    print_ast,
    separate_operations,
    validate,
)
from graphql.execution.values import get_variable_values

from catalog.models import Author, Book, Category
from tests.catalog.reference_changes import (
    add_category,
    draft,
    person,
    remove,
    replace,
)
from tests.catalog.reference_rows import (
    Rows,
    books_of,
    everything,
    refusal,
    row_by_id,
)

SDL = Path(__file__).parents[2] / "docs" / "api" / "catalog.graphql"


def matches(part: str | None, text: str) -> bool:
    return (part or "").casefold() in text.casefold()


def title(row: Any) -> str:
    """Return the name by which a row is found."""
    is_author = isinstance(row, Author)
    return f"{row.first_name} {row.last_name}" if is_author else row.name


class Counter:
    """The rows that the answer holds, as often as it holds them."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self, rows: Rows) -> Rows:
        self.rows += len(rows)
        return rows


def listed(rows: Any) -> Any:
    """Return the resolver of a list, whose rows are counted."""
    return lambda source, info, **arguments: info.context(rows(source, **arguments))


def single(row: Any) -> Any:
    """Return the resolver of one row, which is counted if it exists."""

    def resolve(source: Any, info: Any, **arguments: Any) -> Any:
        result = row(source, **arguments)
        info.context([] if result is None else [result])
        return result

    return resolve


def by_name(_: Any, name: str | None = None) -> Any:
    return next(
        (
            book
            for book in everything(Book)
            if name is not None and book.name.casefold() == name.casefold()
        ),
        None,
    )


def search(_: Any, title: str) -> Rows:
    books = [book for book in everything(Book) if matches(title, book.name)]
    return sorted(books, key=lambda book: (book.name, book.pk))


def fulfils(row: Any, conditions: dict[str, Any]) -> bool:
    """Return True if a row meets every condition of a filter."""
    return all(
        MEETS[name](row, value)
        for name, value in conditions.items()
        if value is not None
    )


def begins(row: Any, text: str) -> bool:
    return bool(title(row).casefold().startswith(text.casefold()))


MEETS: dict[str, Any] = {
    "and": lambda row, parts: all(fulfils(row, each) for each in parts),
    "or": lambda row, parts: any(fulfils(row, each) for each in parts),
    "not": lambda row, part: not fulfils(row, part),
    "title": lambda row, part: matches(part, title(row)),
    "name": lambda row, part: matches(part, title(row)),
    "titleStartsWith": begins,
    "nameStartsWith": begins,
    "idIn": lambda row, ids: str(row.pk) in ids,
    "authorId": lambda row, key: row.author_id == key,
    "authorIdIn": lambda row, keys: row.author_id in keys,
    "categoryId": lambda row, key: row.category_id == key,
    "categoryIdIn": lambda row, keys: row.category_id in keys,
    "minPageCount": lambda row, number: row.page_count >= number,
    "maxPageCount": lambda row, number: row.page_count <= number,
}


def relevance(row: Any, part: str) -> int:
    """Return how well a row fits a text: 0 is best, 3 worst."""
    name, text = title(row).casefold(), part.casefold()
    words = [name[n:] for n in range(1, len(name) + 1) if name[n - 1] in " -'\u2019\"("]
    fits = [
        name == text,
        name.startswith(text),
        any(word.startswith(text) for word in words),
        True,
    ]
    return fits.index(True)


class Order:
    """Columns of rows in the order in which they decide, and whether each descends."""

    def __init__(self, model: Any, names: list[str], part: str | None = None) -> None:
        self.part = part
        columns = {
            "ID": [],
            "NAME": ["last_name", "first_name"] if model is Author else ["name"],
            "PAGE_COUNT": ["page_count"],
            "NAME_IGNORING_CASE": ["name_folded"],
            "RELEVANCE": ["relevance", "name_folded"],
        }
        self.parts: list[tuple[str, bool]] = []
        for name in names:
            kind, _, way = (f"{name}_ASC" if name == "RELEVANCE" else name).rpartition(
                "_"
            )
            seen = [column for column, _ in self.parts]
            new = [column for column in columns[kind] if column not in seen]
            self.parts += [(column, way == "DESC") for column in new]
            key = ("pk", way == "DESC")
            if kind == "ID":
                break
        self.parts.append(key)
        if part is None and "relevance" in dict(self.parts):
            raise refusal("BAD_USER_INPUT", field="filter")

    def place(self, row: Any) -> list[Any]:
        return [
            relevance(row, self.part or "")
            if column == "relevance"
            else getattr(row, column)
            for column, _ in self.parts
        ]

    @property
    def example(self) -> list[Any]:
        return ["" if "name" in column else 1 for column, _ in self.parts]

    def before(self, left: list[Any], right: list[Any]) -> bool:
        for (_, descends), one, other in zip(self.parts, left, right, strict=True):
            if one != other:
                return bool(one > other) if descends else bool(one < other)
        return False


def cursor(place: list[Any]) -> str:
    text = json.dumps(place, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def place_of(cursor: str, example: list[Any], field: str) -> list[Any]:
    try:
        data = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True)
        place: list[Any] = json.loads(data)
        assert [type(value) for value in place] == [type(value) for value in example]
        assert all(
            "\0" not in value if isinstance(value, str) else abs(value) < 2**63
            for value in place
        )
    except (ValueError, TypeError, AssertionError):
        raise refusal("BAD_USER_INPUT", field=field) from None
    return place


def connection(model: Any) -> Any:
    """Make a resolver of a connection: all its rows in a list, of which a page is cut out."""

    def resolve(source: Any, info: Any, **arguments: Any) -> dict[str, Any]:
        first, last = arguments.get("first"), arguments.get("last")
        names = [arguments.get("orderBy") or "ID_ASC", *(arguments.get("thenBy") or [])]
        conditions = arguments.get("filter") or {}
        part = conditions.get("title" if model is Book else "name")
        order = Order(model, names, part)
        bounds = [
            place_of(arguments[field], order.example, field)
            if arguments.get(field)
            else None
            for field in ("after", "before")
        ]
        if first is not None and last is not None:
            raise refusal("BAD_USER_INPUT", field="last")
        for field, value in (("first", first), ("last", last)):
            if value is not None and not 0 <= value <= 100:
                raise refusal("BAD_USER_INPUT", field=field)
        every = everything(model) if source is None else books_of(source)
        rows = [row for row in every if fulfils(row, conditions)]
        for place, (_, descends) in reversed([*enumerate(order.parts)]):
            rows.sort(key=lambda row: order.place(row)[place], reverse=descends)
        return cut(info.context, rows, order, bounds, first, last)

    return resolve


def node(row: Any, info: Any) -> Any:
    info.context([row])
    return row


def cut(
    count: Counter, rows: Rows, order: Order, bounds: Any, first: Any, last: Any
) -> dict[str, Any]:
    place, before = order.place, order.before
    after, until = bounds
    window = [
        row
        for row in rows
        if (after is None or before(after, place(row)))
        and (until is None or before(place(row), until))
    ]
    size = next((value for value in (first, last) if value is not None), 50)
    backward = last is not None
    page = window[max(len(window) - size, 0) :] if backward else window[:size]
    more = len(window) > size
    return {
        "nodes": lambda _info: count(page),
        "edges": [
            {"cursor": cursor(place(row)), "node": partial(node, row)} for row in page
        ],
        "totalCount": len(rows),
        "pageInfo": {
            "startCursor": cursor(place(page[0])) if page else None,
            "endCursor": cursor(place(page[-1])) if page else None,
            "hasNextPage": more
            if not backward
            else any(before(place(page[-1]), place(row)) for row in rows)
            if page
            else until is not None
            and any(not before(place(row), until) for row in rows),
            "hasPreviousPage": more
            if backward
            else any(before(place(row), place(page[0])) for row in rows)
            if page
            else after is not None
            and any(not before(after, place(row)) for row in rows),
        },
    }


RESOLVERS: dict[str, dict[str, Any]] = {
    "Query": {
        "getBookByName": single(by_name),
        "getBookById": single(lambda _, key: row_by_id(Book, key)),
        "getAllBooks": listed(lambda _: everything(Book)),
        "getAuthorById": single(lambda _, key=None: row_by_id(Author, key)),
        "getAllAuthors": listed(lambda _: everything(Author)),
        "getAllCategories": listed(lambda _: everything(Category)),
        "getCategoryById": single(lambda _, key: row_by_id(Category, key)),
        "searchBooks": listed(search),
        "books": connection(Book),
        "authors": connection(Author),
        "categories": connection(Category),
    },
    "Mutation": {
        "addBook": single(lambda _, book: Book.objects.create(**draft(book))),
        "updateBook": single(lambda _, key, book: replace(Book, key, draft(book))),
        "deleteBook": lambda _, _info, key: remove(Book, key),
        "addAuthor": single(lambda _, author: Author.objects.create(**person(author))),
        "updateAuthor": single(
            lambda _, key, author: replace(Author, key, person(author))
        ),
        "deleteAuthor": lambda _, _info, key: remove(Author, key),
        "addCategory": single(add_category),
    },
    "Book": {
        "id": lambda row, _: row.pk,
        "pageCount": lambda row, _: row.page_count,
        "externalId": lambda row, _: row.external_id,
    },
    "Author": {
        "id": lambda row, _: row.pk,
        "firstName": lambda row, _: row.first_name,
        "lastName": lambda row, _: row.last_name,
        "bookCount": lambda row, _: len(books_of(row)),
        "books": listed(books_of),
        "booksPage": connection(Book),
    },
    "Category": {
        "id": lambda row, _: row.pk,
        "books": listed(books_of),
        "booksPage": connection(Book),
    },
}


def reference_schema() -> GraphQLSchema:
    schema = build_schema(SDL.read_text())
    for type_name, fields in RESOLVERS.items():
        for name, resolve in fields.items():
            field = schema.type_map[type_name].fields[name]  # type: ignore[attr-defined]
            field.resolve = resolve
            for argument in field.args.keys() & {"id"}:
                field.args[argument].out_name = "key"
    return schema


schema = reference_schema()


def formatted(errors: list[GraphQLError], code: str) -> list[dict[str, Any]]:
    """Return the path and the extensions of errors; `code` is of those that bring none."""
    shown = []
    for error in errors:
        cause = error
        while isinstance(cause.original_error, GraphQLError):
            cause = cause.original_error
        if cause.original_error is not None:
            raise cause.original_error
        extensions = {"code": code, **(error.extensions or {})}
        shown.append({"path": error.path, "extensions": extensions})
    return shown


def conditions(document: DocumentNode, node: OperationDefinitionNode) -> list[str]:
    """Return the variables of @skip and @include in an operation and its fragments."""
    part = separate_operations(document)[node.name.value if node.name else ""]
    return re.findall(r"@(?:skip|include)\(if: \$(\w+)\)", print_ast(part))


def answer(query: str, operation: str | None, variables: dict[str, Any]) -> Any:
    """Return data (None: not executed), errors, and how many rows the answer holds."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return None, formatted([error], "GRAPHQL_PARSE_FAILED"), 0
    if errors := validate(schema, document, max_errors=20):
        return None, formatted(errors, "GRAPHQL_VALIDATION_FAILED"), 0
    if (node := get_operation_ast(document, operation)) is None:
        return None, formatted([GraphQLError("")], "OPERATION_RESOLUTION_FAILURE"), 0
    values = get_variable_values(schema, node.variable_definitions or (), variables)
    if isinstance(values, dict) and None in map(values.get, conditions(document, node)):
        return None, formatted([GraphQLError("")], "BAD_USER_INPUT"), 0
    count = Counter()
    result = execute_sync(
        schema,
        document,
        context_value=count,
        variable_values=variables,
        operation_name=operation,
    )
    return result.data, formatted(result.errors or [], "BAD_USER_INPUT"), count.rows
