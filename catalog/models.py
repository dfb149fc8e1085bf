"""Books, their authors and their categories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models, transaction

from catalog.texts import DESCRIPTION_LENGTH, NAME_LENGTH, folded

if TYPE_CHECKING:
    TextField = models.TextField[str, str]
else:
    TextField = models.TextField


class FoldedTextField(TextField):
    """Another column of the row, case-folded; every insert and save writes it.

    The databases disagree about letter case (SQLite folds ASCII alone, PostgreSQL follows its
    locale), so Python folds. `QuerySet.update()` must set this column beside its source.
    """

    def __init__(self, source: str, **options: Any) -> None:
        self.source = source
        super().__init__(**{**options, "editable": False})

    def deconstruct(self) -> Any:
        name, path, _, options = super().deconstruct()
        del options["editable"]
        return name, path, (self.source,), options

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        value = folded(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, value)
        return value


class OwnerQuerySet(models.QuerySet[Any]):
    """Authors or categories, to which books refer."""

    def delete(self) -> tuple[int, dict[str, int]]:
        """Delete the rows; no book can begin to refer to them at the same time."""
        with transaction.atomic():
            rows = self.model.objects.filter(pk__in=self.order_by().values("pk"))
            list(rows.order_by("pk").select_for_update().values_list("pk"))
            return super().delete()

    delete.queryset_only = True  # type: ignore[attr-defined] # not of managers, as Django's
    delete.alters_data = True  # type: ignore[attr-defined]


class BookQuerySet(models.QuerySet["Book"]):
    def search(self, part: Any) -> BookQuerySet:
        """Keep the books whose name contains this folded text.

        PostgreSQL has an index of trigrams; SQLite reads all names.
        """
        return self.filter(name_folded__contains=part)


class Author(models.Model):
    id = models.AutoField(primary_key=True)  # the GraphQL Int that names it has 32 bits
    first_name = models.CharField(max_length=NAME_LENGTH)
    last_name = models.CharField(max_length=NAME_LENGTH)

    objects = OwnerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.first_name} {self.last_name}"

    @property
    def book_count(self) -> int:
        return self.books.count()


class Category(models.Model):
    id = models.AutoField(primary_key=True)  # the GraphQL Int that names it has 32 bits
    name = models.CharField(max_length=NAME_LENGTH)
    # null: a category without a description answers null, not an empty text
    description = models.TextField(max_length=DESCRIPTION_LENGTH, null=True, blank=True)  # noqa: DJ001

    objects = OwnerQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "categories"

    def __str__(self) -> str:
        return self.name


class Book(models.Model):
    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=NAME_LENGTH)
    name_folded = FoldedTextField("name")
    page_count = models.PositiveIntegerField()
    author = models.ForeignKey(Author, models.PROTECT, related_name="books")
    category = models.ForeignKey(
        Category, models.SET_NULL, related_name="books", null=True, blank=True
    )

    objects = BookQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["name_folded"], name="book_by_folded_name")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(page_count__gte=0, page_count__lt=2**31),
                name="book_page_count_is_a_graphql_int",
            ),
        ]

    def __str__(self) -> str:
        return self.name
