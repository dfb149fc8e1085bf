from __future__ import annotations

import re
from errno import ENOSPC
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from hypothesis import HealthCheck, given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from catalog import authors, books, bulk, categories, demo
from catalog.management.commands import import_catalog
from catalog.models import Author, Book, Category
from tests.catalog.factories import AuthorFactory, BookFactory

pytestmark = pytest.mark.django_db

NAMED = {"authorFirstName": "B", "authorLastName": "C"}
HEADER = "name,pageCount,authorFirstName,authorLastName,categoryName\n"
GOOD_LINE = (
    '{"name": "A", "pageCount": 1, "authorFirstName": "B", "authorLastName": "C"}'
)


@pytest.fixture
def import_text(tmp_path):
    """Import a file with a text."""

    def run(text, suffix="csv", **options):
        file = tmp_path / f"books.{suffix}"
        file.write_text(text, newline="")
        call_command("import_catalog", str(file), **options)

    return run


def clear():
    for model in (Book, Author, Category):
        model.objects.all().delete()


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
            "external_id",
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
    clear()
    call_command("import_catalog", str(file))
    assert rows() == before
    assert Author.objects.count() == len({row[3:5] for row in before})
    output = capsys.readouterr().out
    assert output == f"{len(before)} books written.\n{len(before)} books added.\n"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert list(Book.objects.search("война")) == list(
        Book.objects.filter(name="Война и мир")
    )


def accepted(longest: int, *, blank: bool = False):
    """Texts that the API accepts, among them those that files and spreadsheets treat as special."""
    special = "\r\n\",;=\t\x00\x0b\x0c\x1c\x85\u2028\ufeff\\ a'é😀".replace("\x00", "")
    letters = st.one_of(
        st.sampled_from(special),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    )
    texts = st.text(letters, max_size=12) | st.sampled_from(
        [
            "\r",
            "a\rb",
            "a\r\nb",
            '"',
            '""',
            ' "a" ',
            ",",
            "\ufeffa",
            "a\n",
            "x" * longest,
        ]
    )
    return texts if blank else texts.filter(str.strip)


names = accepted(255)
records = st.tuples(
    names, names, names, st.none() | st.tuples(names, st.none() | accepted(10_000, blank=True)),
    st.none() | names,
)  # fmt: skip


@example_settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    added=st.lists(
        records, min_size=1, max_size=4, unique_by=lambda record: record[4] or object()
    )
)
def test_every_accepted_text_survives_an_export_and_an_import(tmp_path, added):
    clear()
    described = dict(category for *_, category, _ in added if category)
    for name, first, last, category, external_id in added:
        author = authors.add(first_name=first, last_name=last)
        key = category and categories.add(
            name=category[0], description=described[category[0]]
        )
        fields = {"name": name, "page_count": 0, "author_id": author}
        if external_id is None:
            books.add(**fields, category_id=key)
        else:
            item = {**fields, "category_id": key, "external_id": external_id}
            books.upsert_list([item])
    before = rows()
    for suffix in (".csv", ".jsonl"):
        file = tmp_path / f"books{suffix}"
        with file.open("w", encoding="utf-8", newline="") as target:
            bulk.dump(target, suffix)
        clear()
        assert bulk.load(file) == len(added)
        assert rows() == before


def test_categories_of_one_name_keep_their_descriptions(tmp_path):
    for description in ("One", "Two", "", "One"):
        category = Category.objects.create(name="Novel", description=description)
        BookFactory.create(category=category)
    for suffix in ("csv", "jsonl"):
        before, file = rows(), tmp_path / f"books.{suffix}"
        call_command("export_catalog", str(file))
        clear()
        call_command("import_catalog", str(file))
        assert rows() == before
        assert Category.objects.count() == 3


def test_a_first_description_serves_the_rows_without_one(import_text):
    header = HEADER.replace("\n", ",categoryDescription\n")
    import_text(header + 'A,1,B,C,Novel,Long\nD,1,B,C,Novel,\nE,1,B,C,"",""\n')
    assert [row[5:7] for row in rows()] == [("Novel", "Long")] * 2 + [(None, None)]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_files_of_other_programs_are_read(import_text, ending):
    lines = [
        HEADER.strip(),
        '"5"" disk",1,"B","C","Novel"',
        "",
        '5" disk,1,B,C,',
        '"two\nlines",1,B,C,""',
    ]
    import_text(ending.join(lines))
    assert [row[0] for row in rows()] == ['5" disk', '5" disk', "two\nlines"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("model", [Author, Category])
def test_a_deletion_during_an_import_is_one_clear_error(
    import_text, monkeypatch, model
):
    def deleted(*_: object) -> None:
        rows = model.objects.all()
        rows._raw_delete(
            rows.db
        )  # as another session would: without a look at the books

    monkeypatch.setattr(import_catalog.Command, "progress_bar", lambda *_: deleted)
    with pytest.raises(CommandError, match="author or a category was deleted"):
        import_text(HEADER + "A,1,B,C,Novel\n")
    assert not Book.objects.exists()


def test_an_external_id_that_is_taken_during_an_import_is_one_clear_error(
    import_text, monkeypatch
):
    BookFactory.create(external_id="a")
    monkeypatch.setattr(bulk, "taken", lambda _: [])  # looked before it was taken
    header = HEADER.replace("categoryName", "externalId")
    with pytest.raises(CommandError, match="another book got an externalId"):
        import_text(header + "A,1,B,C,a\n")
    assert Book.objects.count() == 1


def test_the_cost_of_a_batch_does_not_grow_with_the_categories_before_it():
    owners = bulk.Owners()
    owners.create_missing([{"categoryName": str(key), **NAMED} for key in range(9)])
    added = owners.added
    owners.create_missing([{"categoryName": "new", **NAMED}])
    assert owners.added is added  # extended, not copied
    assert len(added) == 10


def test_authors_and_categories_that_are_there_are_used(import_text):
    author = AuthorFactory.create(first_name="Jane", last_name="Austen")
    AuthorFactory.create(first_name="Jane", last_name="Austen")
    Category.objects.create(name="Novel", description="Kept")
    import_text("\ufeff" + HEADER + "Emma,1,Jane,Austen,Novel\nX,0,jane,Austen,\n")
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
        ("csv", HEADER + "A,1,B\n", "line 2: the row has another number of cells"),
        ("csv", HEADER + "A,1,B,C,\n\nA,1,B,C,D,E\n", "line 4: the row has another number of cells"),
        ("csv", HEADER + 'A,1,B,C,"open\n\n', "line 3: unexpected end of data"),
        ("csv", HEADER + "A\0,1,B,C,\n", "line 2: name must not hold the NUL"),
        ("csv", "name,name\nA,B\n", "line 1: the header names a field twice"),
        ("csv", "name,colour\nA,red\n", "line 1: 'colour' is not a known field"),
        ("csv", "name,colour\n", "line 1: 'colour' is not a known field"),
        ("csv", "x" * 999 + "\nA\n", "line 1: '" + "x" * 255 + "' is not a known field"),
        ("csv", "name\nA\n", "line 1: pageCount is missing"),
        ("csv", "name;pageCount\n", "line 1: 'name;pageCount' is not a known field"),
        ("csv", HEADER + "A" * 256 + ",1,B,C,\n", "line 2: name must have at most 255"),
        ("jsonl", '{"name": "A"}\n', "line 1: pageCount is missing"),
        ("jsonl", "\n[1]\n", "line 2: not a JSON object"),
        ("jsonl", "{\n", "line 1: "),
        ("jsonl", '{"name": 1, "pageCount": 1, "authorFirstName": "B", "authorLastName": "C"}', "name must be text"),
        ("jsonl", '{"name": "A", "pageCount": true, "authorFirstName": "B", "authorLastName": "C"}', "whole number"),
    ],
)  # fmt: skip
def test_a_faulty_file_imports_nothing_and_names_the_line(
    import_text, suffix, text, fault
):
    if suffix == "jsonl" and "line" not in fault:
        text = f"{GOOD_LINE}\n{text}"
    with pytest.raises(CommandError, match="Nothing was imported") as refusal:
        import_text(text, suffix)
    assert fault in str(refusal.value)
    assert not Book.objects.exists()
    assert not Author.objects.exists()


@pytest.mark.parametrize("good", [0, 1, 1_000])  # the last is decoded in two blocks
def test_bytes_that_are_not_utf_8_are_refused(tmp_path, good):
    file = tmp_path / "books.csv"
    file.write_bytes(HEADER.encode() + b"A,1,B,C,\r\n" * good + b"\xff,1,B,C,\n")
    with pytest.raises(CommandError, match=rf"\nline {good + 2}: .*utf-8"):
        call_command("import_catalog", str(file))


def test_books_get_their_keys_in_the_order_of_the_file(import_text, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 20)
    names = [str(number) for number in range(50)]
    import_text(HEADER + "".join(f"{name},1,B,C,\n" for name in names))
    assert [row[0] for row in rows()] == names


def test_a_fault_after_many_good_lines_undoes_them_all(import_text, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 100)
    with pytest.raises(CommandError) as refusal:
        import_text(HEADER + "A,1,B,C,\n" * 250 + "A,x,B,C,\n" * 30)
    assert str(refusal.value).count("line ") == 20
    assert "more" in str(refusal.value)
    assert not Book.objects.exists()


@pytest.mark.parametrize("command", ["import_catalog", "export_catalog"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("books.txt", "must end in"),
        ("absent/books.csv", "No such file"),
        ("taken.csv", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path, command, name, reason):
    (tmp_path / "taken.csv").mkdir()
    with pytest.raises(CommandError, match=reason) as refusal:
        call_command(command, str(tmp_path / name))
    assert len(str(refusal.value).splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken.csv"]


def test_an_export_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(bulk, "dump", full)
    file = tmp_path / "books.csv"
    file.write_text("last")
    with pytest.raises(CommandError, match="No space left"):
        call_command("export_catalog", str(file))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["last"]


def test_empty_lines_are_left_out_and_counted(import_text):
    import_text(f"\n{GOOD_LINE}\n \n{GOOD_LINE}\n", "jsonl")
    assert Book.objects.count() == 2
    with pytest.raises(CommandError, match="line 4: name is missing"):
        import_text(f"\n{GOOD_LINE}\n\n{{}}\n", "jsonl")


class Terminal(StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_how_far_an_import_is(import_text, monkeypatch):
    monkeypatch.setattr(bulk, "BATCH", 800)
    terminal = Terminal()
    import_text(HEADER + "A,1,B,C,\n" * 2_000, stderr=terminal)
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


def test_an_external_id_that_is_taken_is_refused(import_text):
    BookFactory.create(external_id="a")
    header = HEADER.replace("categoryName", "externalId")
    with pytest.raises(CommandError) as refusal:
        import_text(header + "A,1,B,C,a\nA,1,B,C,b\nA,1,B,C,b\nA,1,B,C,\n")
    assert "externalId 'a' is taken." in str(refusal.value)
    assert "externalId 'b' is taken." in str(refusal.value)
    assert Book.objects.count() == 1


@pytest.mark.skipif(
    connection.vendor == "sqlite", reason="SQLite plans without statistics"
)
def test_an_import_ends_with_statistics_for_searches(import_text):
    import_text(HEADER + "Quixotic books,1,Ann,Lee,\n" * 20)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT most_common_vals::text FROM pg_stats "
            "WHERE tablename = 'catalog_book' AND attname = 'name_folded'"
        )
        assert "quixotic books" in cursor.fetchone()[0]
