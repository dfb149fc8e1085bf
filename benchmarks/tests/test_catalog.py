"""The benchmarks run, print their figures, and do not touch the default database."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from benchmarks.__main__ import command
from benchmarks.catalog.command import agree
from benchmarks.catalog.load import BadAnswerError, load
from benchmarks.catalog.million import write
from benchmarks.catalog.servers import Server, server
from catalog.models import Book
from tests.running import PATIENCE_S

pytestmark = pytest.mark.slow
OPERATIONS = ["getAllBooks", "getAllAuthors", "searchBooks", "getBookById", "addBook"]


@pytest.mark.django_db
def test_every_contender_that_is_installed_is_compared_and_agrees():
    out = StringIO()
    call_command(
        command("catalog"), books=20, rounds=1, seconds=0.2, clients=2, stdout=out
    )
    tables = out.getvalue().split("\n\n")
    rates = [row for row in tables[2].splitlines() if row.startswith("| get")]
    assert "| Signpost | graphene-django, documented |" in tables[2]
    assert "| JsonResponse of values() | driver and orjson |" in tables[2]
    assert re.findall(r"^\| (\w+) \| [\d,]+ \| ", tables[2], re.MULTILINE) == OPERATIONS
    assert all(int(row.split(" | ")[1].replace(",", "")) > 0 for row in rates)
    assert not Book.objects.exists()


@pytest.mark.django_db
def test_a_large_catalogue_is_imported_and_asked(capfd):
    call_command(command("search"), books=300, times=1)
    output = capfd.readouterr().out
    assert "300 books added." in output
    assert re.search(
        r"300 books imported from 0 MB of CSV in \d+ s \(\d+ s of CPU\)", output
    )
    assert re.search(r"searchBooks, a rare word \| 10 \| [\d.]+", output)
    assert re.search(r"searchBooks, no match \| 0 \| [\d.]+", output)
    assert re.search(r"books, the last 100 by id \| 100 \| [\d.]+", output)
    assert re.search(r"totalCount \| 300 \| [\d.]+", output)
    assert not Book.objects.exists()


@pytest.mark.django_db(transaction=True)  # PostgreSQL cannot vacuum inside one
def test_a_refused_question_is_shown_by_its_code(settings, capsys, tmp_path):
    settings.CATALOG_ROW_BUDGET = 0
    call_command(command("search"), "--ask", times=1)
    assert "| getAllBooks | 0 |" in capsys.readouterr().out
    write(tmp_path / "books.csv", 2)
    call_command("import_catalog", str(tmp_path / "books.csv"))
    call_command(command("search"), "--ask", times=1)
    assert "| getAllBooks | RESULT_TOO_LARGE |" in capsys.readouterr().out


def test_a_contender_that_answers_differently_ends_the_comparison(httpserver):
    for pages in (1, 2):
        answer = {"data": {"getAllBooks": [{"pageCount": pages}]}}
        httpserver.expect_ordered_request("/graphql").respond_with_json(answer)
    there = Server(httpserver.port, 0)
    with pytest.raises(CommandError, match="ariadne, joins by hand answers getAllB"):
        agree({"Signpost": there, "ariadne, joins by hand": there}, 20)


@pytest.mark.parametrize(
    ("status", "body"), [(500, "{}"), (200, '{"errors": []}'), (404, "no")]
)
def test_a_bad_answer_is_never_counted(httpserver, status, body):
    httpserver.expect_request("/graphql").respond_with_data(body, status)
    with pytest.raises(BadAnswerError, match=str(status)):
        load(httpserver.port, [b"{}"], seconds=PATIENCE_S, clients=1)


def test_a_server_that_does_not_start_is_one_clear_error(tmp_path):
    database = f"sqlite:///{tmp_path}/bench.sqlite3"
    with (
        pytest.raises(CommandError, match="did not start"),
        server("absent", database),
    ):
        pytest.fail("it started")


@pytest.mark.parametrize("name", ["catalog", "search"])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:////nowhere/x.sqlite3", "^--database-url: .*/nowhere/x.sqlite3.*open"),
        ("nope", "^--database-url: DATABASE_URL"),
    ],
)
def test_a_database_that_is_not_there_is_one_clear_error(name, url, words, capfd):
    with pytest.raises(CommandError, match=words) as refused:
        call_command(command(name), database_url=url)
    assert "\n" not in str(refused.value)
    assert capfd.readouterr() == ("", "")
