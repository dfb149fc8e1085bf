from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from catalog.models import Book
from catalog.webhooks import OWNER, PROFILE
from tests.catalog.factories import AuthorFactory, BookFactory
from tests.signatures import timestamped_signature
from tests.webhooks_core.engine import dispatch
from webhooks_core import endpoints
from webhooks_core.models import Delivery, Endpoint, Event

URL = "http://127.0.0.1:9/"
NAMES = '{firstName: "A", lastName: "B"}'


@pytest.fixture
def events(settings, db):
    settings.CATALOG_EVENTS = True


def published():
    return [
        (event.type, json.loads(bytes(event.body))["data"])
        for event in Event.objects.filter(profile=PROFILE).order_by("pk")
    ]


def test_no_event_is_published_by_default(ask):
    ask(f"mutation {{ addAuthor(author: {NAMES}) {{ id }} }}")
    assert not Event.objects.exists()


def test_every_change_is_published_once_with_the_fields_of_the_contract(ask, events):
    author = AuthorFactory.create()
    book = f'{{name: "Emma", pageCount: 1, authorId: {author.pk}}}'
    added = ask(f"mutation {{ addBook(book: {book}) {{ id }} }}")["data"]["addBook"][
        "id"
    ]
    ask(f"mutation {{ updateBook(id: {added}, book: {book}) {{ id }} }}")
    ask(f"mutation {{ a: deleteBook(id: {added}) b: deleteBook(id: {added}) }}")
    ask(f"mutation {{ updateAuthor(id: {author.pk}, author: {NAMES}) {{ id }} }}")
    ask(
        f"mutation {{ a: deleteAuthor(id: {author.pk}) b: deleteAuthor(id: {author.pk}) }}"
    )
    new = ask(f"mutation {{ addAuthor(author: {NAMES}) {{ id }} }}")["data"][
        "addAuthor"
    ]
    category = ask('mutation { addCategory(category: {name: "C"}) { id } }')["data"]
    data = {"name": "Emma", "pageCount": 1, "authorId": author.pk, "categoryId": None}
    names = {"firstName": "A", "lastName": "B"}
    assert published() == [
        ("book.created", {"id": added, **data}),
        ("book.updated", {"id": added, **data}),
        ("book.deleted", {"id": added}),
        ("author.updated", {"id": str(author.pk), **names}),
        ("author.deleted", {"id": str(author.pk)}),
        ("author.created", {"id": new["id"], **names}),
        ("category.created", {"id": category["addCategory"]["id"], "name": "C", "description": None}),
    ]  # fmt: skip


def test_a_list_of_books_publishes_an_event_for_each(ask, events):
    known = BookFactory.create(external_id="b")
    author = known.author_id
    items = ", ".join(
        f'{{name: "N", pageCount: 1, authorId: {author}, externalId: "{key}"}}'
        for key in "ab"
    )
    ask(f"mutation {{ upsertBooks(books: [{items}]) {{ errors {{ index }} }} }}")
    added = Book.objects.get(external_id="a")
    ask(f'mutation {{ deleteBooks(bookIds: ["{known.pk}", "99"]) }}')
    data = {"name": "N", "pageCount": 1, "authorId": author, "categoryId": None}
    assert published() == [
        ("book.created", {"id": str(added.pk), **data}),
        ("book.updated", {"id": str(known.pk), **data}),
        ("book.deleted", {"id": str(known.pk)}),
    ]


def test_a_refused_change_publishes_nothing(ask, events, settings):
    author = BookFactory.create().author
    settings.CATALOG_ROW_BUDGET = 1
    answer = ask(
        """mutation ($a: Int!, $id: ID!) { deleteAuthor(id: $id)
        addBook(book: {name: "x", pageCount: 1, authorId: $a}) { author { books { id } } } }""",
        a=author.pk,
        id=author.pk,
    )
    assert [error["extensions"]["code"] for error in answer["errors"]] == [
        "AUTHOR_HAS_BOOKS",
        "RESULT_TOO_LARGE",
    ]
    assert published() == []


def test_a_receiver_gets_the_types_that_it_lists(events, ask):
    for types in ([], ["book.deleted"]):
        endpoints.create(profile=PROFILE, owner=OWNER, url=URL, event_types=types)
    ask(f"mutation {{ addAuthor(author: {NAMES}) {{ id }} }}")
    [delivery] = Delivery.objects.all()
    assert delivery.endpoint.event_types == []


@pytest.mark.django_db(transaction=True)
def test_a_change_arrives_signed(events, ask, httpserver):
    httpserver.expect_request("/").respond_with_data("")
    created = endpoints.create(
        profile=PROFILE,
        owner=OWNER,
        url=httpserver.url_for("/").replace("localhost", "127.0.0.1"),
        event_types=["author.created"],
    )
    ask(f"mutation {{ addAuthor(author: {NAMES}) {{ id }} }}")
    dispatch()
    [(request, _)] = httpserver.log
    signature = request.headers["X-Catalog-Signature"]
    timestamp = int(signature.split(",")[0].removeprefix("t="))
    assert signature == timestamped_signature([created.secret], timestamp, request.data)
    assert request.headers["X-Catalog-Event"] == "author.created"
    assert request.json["type"] == "author.created"


def test_receivers_are_added_listed_and_removed(events, capsys):
    call_command("catalog_webhooks", "add", URL, "--event", "book.created")
    public_id, secret = capsys.readouterr().out.split()
    assert secret.startswith("whsec_")
    call_command("catalog_webhooks", "list")
    heading = "id\turl\tevent types\n"
    assert capsys.readouterr().out == f"{heading}{public_id}\t{URL}\tbook.created\n"
    call_command("catalog_webhooks", "remove", public_id)
    call_command("catalog_webhooks", "list")
    assert capsys.readouterr() == ("Removed.\n", "There are no receivers.\n")
    with pytest.raises(CommandError, match="no such receiver"):
        call_command("catalog_webhooks", "remove", public_id)


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "ftp://127.0.0.1/", "nonsense"])
def test_a_receiver_must_have_an_acceptable_address(events, url):
    with pytest.raises(CommandError, match="url "):
        call_command("catalog_webhooks", "add", url)


def test_no_receiver_is_added_while_events_are_off(db):
    with pytest.raises(CommandError, match="CATALOG_EVENTS is off"):
        call_command("catalog_webhooks", "add", URL)
    assert not Endpoint.objects.exists()


def test_receivers_are_listed_and_removed_while_events_are_off(db, capsys):
    created = endpoints.create(profile=PROFILE, owner=OWNER, url=URL, event_types=[])
    public_id = created.endpoint.public_id
    call_command("catalog_webhooks", "list")
    call_command("catalog_webhooks", "remove", public_id)
    call_command("catalog_webhooks", "list")
    heading = "id\turl\tevent types\n"
    listed = f"{heading}{public_id}\t{URL}\tall\n"
    assert capsys.readouterr().out == f"{listed}Removed.\n"


def test_json_is_one_list_of_receivers(events, capsys):
    receivers = [
        endpoints.create(profile=PROFILE, owner=OWNER, url=URL, event_types=types)
        for types in ([], ["book.deleted"])
    ]
    call_command("catalog_webhooks", "list", "--json")
    assert json.loads(capsys.readouterr().out) == [
        {"id": receiver.endpoint.public_id, "url": URL, "event_types": types}
        for receiver, types in zip(receivers, ([], ["book.deleted"]), strict=True)
    ]


def test_the_number_of_receivers_is_limited(events):
    for _ in range(20):
        endpoints.create(profile=PROFILE, owner=OWNER, url=URL, event_types=[])
    with pytest.raises(CommandError, match="as many receivers as may be"):
        call_command("catalog_webhooks", "add", URL)
