"""A large catalogue of made-up titles, the same at every run, and what is asked of it."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from random import Random

from catalog.bulk import FIELDS

SYLLABLES = (
    "bar",
    "del",
    "fin",
    "gor",
    "hal",
    "ker",
    "lun",
    "mas",
    "nor",
    "pel",
    "sut",
    "vim",
)
WORDS = ["".join(three) for three in product(SYLLABLES, repeat=3)]
RARE = "quixotic"
RARE_BOOKS = 10

BOOKS = "{ id name author { firstName lastName } }"
SEARCH = f"query ($title: String!) {{ searchBooks(title: $title) {BOOKS} }}"
PAGE = f"query ($after: String) {{ books(first: 100, after: $after, orderBy: NAME_ASC) {{ nodes {BOOKS} }} }}"
# what is asked: the document and its variables
QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "searchBooks, a rare word": (SEARCH, {"title": RARE}),
    "searchBooks, no match": (SEARCH, {"title": "zebra"}),
    "searchBooks, nine letters": (SEARCH, {"title": "LUNFINGOR"}),
    "searchBooks, two letters, no match (row by row)": (SEARCH, {"title": "zz"}),
    "searchBooks, one letter": (SEARCH, {"title": "a"}),
    "searchBooks, three common letters": (SEARCH, {"title": "nor"}),
    "getBookByName, no match": ('{ getBookByName(name: "Zebra") { id } }', {}),
    "books, 100 by name after a cursor": (PAGE, {"after": "WyJMIiwxXQ=="}),  # ["L",1]
    "books, the last 100 by id": (f"{{ books(last: 100) {{ nodes {BOOKS} }} }}", {}),
    "books, 50 by name with a rare word": (
        f'{{ books(first: 50, orderBy: NAME_ASC, filter: {{title: "{RARE}"}}) {{ nodes {BOOKS} }} }}',
        {},
    ),
    "books, totalCount": ("{ books(first: 0) { totalCount } }", {}),
    "getAllBooks": ("{ getAllBooks { id } }", {}),
}  # fmt: skip


def write(path: Path, books: int) -> None:
    """Write a CSV file for import_catalog: titles of two to five words, 20 books an author."""
    chance = Random(1)  # noqa: S311 - the same file every time
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(FIELDS[:5])
        for number in range(books):
            words = chance.choices(WORDS, k=chance.randint(2, 5))
            if number % max(1, books // RARE_BOOKS) == 0:
                words[0] = RARE
            author = number % max(1, books // 20)
            kind = f"Category {number % 40}"
            title = " ".join(words).capitalize()
            table.writerow(
                [title, number % 900, f"First {author}", f"Last {author}", kind]
            )
