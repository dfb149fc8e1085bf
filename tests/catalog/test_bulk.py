from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from catalog import demo
from catalog.models import Author, Book, Category
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db

HEADER = "name,pageCount,authorFirstName,authorLastName,categoryName\n"


def rows():
    return list(
        Book.objects.order_by("pk").values_list(
            "name",
            "name_folded",
            "page_count",
            "author__first_name",
            "author__last_name",
            "category__name",
            "category__description",
        )
    )


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_import_restores_an_export(tmp_path, suffix, capsys):
    demo.load()
    BookFactory.create(
        name=' "odd",\r\nname\t', author=AuthorFactory.create(last_name="O'Brien; =1+1")
    )
    before, file = rows(), tmp_path / f"books.{suffix}"
    call_command("export_catalog", str(file))
    for model in (Book, Author, Category):
        model.objects.all().delete()
    call_command("import_catalog", str(file))
    assert rows() == before
    assert Author.objects.count() == len({row[3:5] for row in before})
    output = capsys.readouterr().out
    assert output == f"{len(before)} books written.\n{len(before)} books added.\n"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert list(Book.objects.search("война")) == list(
        Book.objects.filter(name="Война и мир")
    )


def test_authors_and_categories_that_are_there_are_used(tmp_path):
    author = AuthorFactory.create(first_name="Jane", last_name="Austen")
    AuthorFactory.create(first_name="Jane", last_name="Austen")
    Category.objects.create(name="Novel", description="Kept")
    file = tmp_path / "books.csv"
    file.write_text("\ufeff" + HEADER + "Emma,1,Jane,Austen,Novel\nX,0,jane,Austen,\n")
    call_command("import_catalog", str(file))
    emma, other = Book.objects.order_by("pk")
    assert emma.author == author
    assert emma.category is not None
    assert emma.category.description == "Kept"
    assert (other.author.first_name, other.category) == ("jane", None)


@pytest.mark.parametrize(
    ("suffix", "text", "fault"),
    [
        ("csv", HEADER + "A,1,B,C,\n,1,B,C,\n", "line 3: name must not be blank"),
        ("csv", HEADER + "A,-1,B,C,\n", "line 2: pageCount must be a whole number"),
        ("csv", HEADER + "A,1.5,B,C,\n", "line 2: pageCount must be a whole number"),
        ("csv", HEADER + "A,\u0661,B,C,\n", "line 2: pageCount must be a whole"),
        ("csv", HEADER + "A,2147483648,B,C,\n", "line 2: pageCount must be a whole"),
        ("csv", HEADER + "A,1,B\n", "the row has another number of cells"),
        ("csv", HEADER + "A,1,B,C,D,E\n", "the row has another number of cells"),
        ("csv", HEADER + 'A,1,B,C,"open\n', "unexpected end of data"),
        ("csv", HEADER + "A\0,1,B,C,\n", "NUL"),
        ("csv", "name,name\nA,B\n", "names a field twice"),
        ("csv", "name,colour\nA,red\n", "line 2: 'colour' is not a known field"),
        ("csv", "name\nA\n", "line 2: pageCount is missing"),
        ("csv", HEADER + "A" * 256 + ",1,B,C,\n", "line 2: name must have at most 255"),
        ("jsonl", '{"name": "A"}\n', "line 1: pageCount is missing"),
        ("jsonl", "[1]\n", "not a JSON object"),
        ("jsonl", "{\n", "after line 0: "),
        ("jsonl", '{"name": 1, "pageCount": 1, "authorFirstName": "B", "authorLastName": "C"}', "name must be text"),
        ("jsonl", '{"name": "A", "pageCount": true, "authorFirstName": "B", "authorLastName": "C"}', "whole number"),
    ],
)  # fmt: skip
def test_a_faulty_file_imports_nothing_and_names_the_line(
    tmp_path, suffix, text, fault
):
    file = tmp_path / f"books.{suffix}"
    good = {
        "name": "Good",
        "pageCount": 1,
        "authorFirstName": "B",
        "authorLastName": "C",
    }
    if suffix == "jsonl" and "line" not in fault:
        text = json.dumps(good) + "\n" + text
    file.write_text(text)
    with pytest.raises(CommandError, match="Nothing was imported") as refusal:
        call_command("import_catalog", str(file))
    assert fault in str(refusal.value)
    assert not Book.objects.exists()
    assert not Author.objects.exists()


def test_bytes_that_are_not_utf_8_are_refused(tmp_path):
    file = tmp_path / "books.csv"
    file.write_bytes(HEADER.encode() + b"\xff,1,B,C,\n")
    with pytest.raises(CommandError, match="utf-8"):
        call_command("import_catalog", str(file))


def test_a_fault_after_many_good_lines_undoes_them_all(tmp_path):
    file = tmp_path / "books.csv"
    file.write_text(HEADER + "A,1,B,C,\n" * 5_000 + "A,x,B,C,\n" * 30)
    with pytest.raises(CommandError) as refusal:
        call_command("import_catalog", str(file))
    assert str(refusal.value).count("line ") == 20
    assert "more" in str(refusal.value)
    assert not Book.objects.exists()


@pytest.mark.parametrize("command", ["import_catalog", "export_catalog"])
@pytest.mark.parametrize("name", ["books.txt", "absent/books.csv"])
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path, command, name):
    with pytest.raises(CommandError):
        call_command(command, str(tmp_path / name))


def test_empty_lines_are_left_out_and_counted(tmp_path):
    line = (
        '{"name": "A", "pageCount": 1, "authorFirstName": "B", "authorLastName": "C"}'
    )
    file = tmp_path / "books.jsonl"
    file.write_text(f"\n{line}\n \n{line}\n")
    call_command("import_catalog", str(file))
    assert Book.objects.count() == 2
    file.write_text(f"\n{line}\n\n{{}}\n")
    with pytest.raises(CommandError, match="line 4: name is missing"):
        call_command("import_catalog", str(file))


class Terminal(StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_far_an_import_is(tmp_path):
    file, terminal = tmp_path / "books.csv", Terminal()
    file.write_text(HEADER + "A,1,B,C,\n" * 5_000)
    call_command("import_catalog", str(file), stderr=terminal)
    drawn = re.findall(r"\[(#*) *\] +(\d+)%\r", terminal.getvalue())
    assert len(drawn) == 3
    assert drawn[-1] == ("#" * 40, "100")
    assert [len(bar) for bar, _ in drawn] == sorted(len(bar) for bar, _ in drawn)
    assert terminal.getvalue().endswith("\n")


def test_the_demo_fills_empty_tables_once():
    assert demo.load() is True
    before = rows()
    assert len(before) == 12
    assert demo.load() is False
    assert rows() == before
    Book.objects.all().delete()
    assert demo.load() is False
