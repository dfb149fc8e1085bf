"""A few real books for a new instance."""

from __future__ import annotations

from django.db import transaction

from catalog.models import Author, Book, Category

CATEGORIES = {
    "Novel": "Long prose fiction.",
    "Science": "How the world works, for everyone.",
    "Philosophy": "How to think about it.",
    "Children": None,
}
# first name, last name: (title, pages, category)
SHELF: dict[tuple[str, str], list[tuple[str, int, str | None]]] = {
    ("Jane", "Austen"): [
        ("Pride and Prejudice", 432, "Novel"),
        ("Emma", 474, "Novel"),
        ("Persuasion", 249, "Novel"),
    ],
    ("Лев", "Толстой"): [
        ("Война и мир", 1274, "Novel"),
        ("Анна Каренина", 864, "Novel"),
    ],
    ("Émile", "Zola"): [("Germinal", 591, "Novel"), ("L'Œuvre", 441, "Novel")],
    ("Charles", "Darwin"): [("On the Origin of Species", 502, "Science")],
    ("Marie", "Curie"): [("Radioactive Substances", 94, "Science")],
    ("Immanuel", "Kant"): [("Kritik der reinen Vernunft", 856, "Philosophy")],
    ("Lewis", "Carroll"): [("Alice's Adventures in Wonderland", 192, "Children")],
    ("紫", "式部"): [("源氏物語", 1216, None)],
}


@transaction.atomic
def load() -> bool:
    """Fill empty tables; return False, without a change, if any has rows."""
    if any(model.objects.exists() for model in (Book, Author, Category)):
        return False
    categories = {
        name: Category.objects.create(name=name, description=description)
        for name, description in CATEGORIES.items()
    }
    for (first_name, last_name), books in SHELF.items():
        author = Author.objects.create(first_name=first_name, last_name=last_name)
        for name, pages, category_name in books:
            category = categories[category_name] if category_name else None
            Book.objects.create(
                name=name, page_count=pages, author=author, category=category
            )
    return True
