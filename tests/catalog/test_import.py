import pytest
from django.core.management import CommandError, call_command

from catalog.models import Author, Book, Category
from tests.catalog.factories import AuthorFactory, BookFactory, CategoryFactory

pytestmark = pytest.mark.django_db

HEADER = "name,pageCount,authorFirstName,authorLastName,categoryName,categoryDescription\n"  # fmt: skip


@pytest.fixture
def import_csv(tmp_path):
    """Import a file of this text or these bytes."""

    def run(content, **options):
        file = tmp_path / "books.csv"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        call_command("import_catalog", str(file), **options)

    return run


def rows():
    return list(
        Book.objects.values_list(
            "name",
            "page_count",
            "author__first_name",
            "author__last_name",
            "category__name",
            "category__description",
        )
    )


def test_books_are_added_with_their_authors_and_categories(import_csv, capsys):
    import_csv(
        "\ufeff" + HEADER + "Emma,474,Jane,Austen,Novel,Long prose\n"
        '"  ""odd"",\r\nname",0,Jane,Austen,,\n'
        "Война и мир,1274,Лев,Толстой,Novel,another\n"
    )
    assert rows() == [
        ("Emma", 474, "Jane", "Austen", "Novel", "Long prose"),
        ('  "odd",\r\nname', 0, "Jane", "Austen", None, None),
        ("Война и мир", 1274, "Лев", "Толстой", "Novel", "Long prose"),
    ]
    assert (Author.objects.count(), Category.objects.count()) == (2, 1)
    assert list(Book.objects.search("война")) == [Book.objects.last()]
    assert capsys.readouterr().out == "3 books added.\n"


def test_authors_and_categories_that_exist_are_taken_the_oldest_of_a_name(import_csv):
    author, _ = [AuthorFactory.create(first_name="A", last_name="B") for _ in range(2)]
    category = CategoryFactory.create(name="Novel", description=None)
    import_csv(HEADER + "x,1,A,B,Novel,\ny,1,a,B,novel,\n")
    first, second = Book.objects.all()
    assert (first.author, first.category) == (author, category)
    assert (second.author.first_name, str(second.category)) == ("a", "novel")


def test_the_order_of_columns_is_free_and_categories_are_optional(import_csv, capsys):
    import_csv("authorLastName,name,authorFirstName,pageCount\nB,x,A,1\n", json=True)
    assert rows() == [("x", 1, "A", "B", None, None)]
    assert capsys.readouterr().out == '{"added":1}\n'


def test_a_file_may_be_longer_than_a_batch(import_csv):
    import_csv(HEADER + "".join(f"b{n},1,A,B{n % 7},,\n" for n in range(4_500)))
    assert Book.objects.count() == 4_500
    assert Author.objects.count() == 7


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 0: the header has no name"),
        ("name,pageCount\n", "line 1: the header has no authorFirstName"),
        ("name,colour\n", "line 1: the header must not have 'colour' here"),
        (HEADER + "x,1,A\n", "line 2: the row has another number of cells"),
        (HEADER + "x,1,A,B,,,y\n", "line 2: the row has another number of cells"),
        (HEADER + '"x,1,A,B,,\n', "line 2: unexpected end of data"),
        (HEADER + ",1,A,B,,\n", "line 2: name must not be blank"),
        (HEADER + "x,1, ,B,,\n", "line 2: authorFirstName must not be blank"),
        (HEADER + "x,1,A,B, ,\n", "line 2: categoryName must not be blank"),
        (HEADER + f"{'x' * 256},1,A,B,,\n", "line 2: name must have at most 255"),
        (HEADER + f"x,1,A,B,N,{'x' * 10_001}\n", "line 2: categoryDescription must"),
        (HEADER + "x,-1,A,B,,\n", "line 2: pageCount must be a whole number"),
        (HEADER + "x,2147483648,A,B,,\n", "line 2: pageCount must be"),
        (HEADER + "x,٣,A,B,,\n", "line 2: pageCount must be"),
        (HEADER.encode() + b"\xff,1,A,B,,\n", "line 0: 'utf-8' codec can't decode"),
    ],
)
def test_a_faulty_file_adds_nothing_and_names_the_line(import_csv, text, fault):
    BookFactory.create()
    with pytest.raises(CommandError, match="Nothing was imported") as refusal:
        import_csv(text)
    assert fault in str(refusal.value)
    assert (Book.objects.count(), Author.objects.count()) == (1, 1)


def test_the_first_twenty_faults_are_named(import_csv):
    good = "".join("x,1,A,B,,\n" for _ in range(2_000))
    with pytest.raises(CommandError) as refusal:
        import_csv(HEADER + good + ",1,A,B,,\n" * 30)
    lines = str(refusal.value).splitlines()
    assert lines[1] == "line 2002: name must not be blank."
    assert len(lines) == 1 + 20 + 1
    assert not Book.objects.exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"none.csv: No such file or directory"):
        call_command("import_catalog", str(tmp_path / "none.csv"))
