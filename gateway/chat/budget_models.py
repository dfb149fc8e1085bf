"""What operators define in the admin as in the file; budgets, and the counters of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from gateway.configuration.shapes import BudgetEntry


class DefinedRow(models.Model):
    """A name, and an entry of the configuration file as YAML."""

    name = models.CharField(max_length=128, unique=True)
    definition = models.TextField(
        help_text="As YAML, like an entry of the configuration file, without its name."
    )
    is_active = models.BooleanField(default=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Budget(DefinedRow):
    """A budget of the admin; like an entry of `budgets:`."""

    class Meta(DefinedRow.Meta):
        pass

    def entry(self) -> BudgetEntry:
        """Return the row as an entry of the configuration. Raises EntryError."""
        from gateway import configuration  # with pydantic, which few commands need

        return configuration.budget(self.name, self.definition)


class BudgetCounter(models.Model):
    """What one subject of a budget has used in one window, of all processes.

    `subject` names it as a denial does; "" if the budget has one counter. `amount` counts requests,
    tokens, or billionths of the prices' currency. `window` is the Unix time of its start.
    """

    budget = models.CharField(max_length=64)
    subject = models.CharField(max_length=600, blank=True)
    window = models.BigIntegerField()
    # Of the subject, so that a tenant can be erased; "" if the counter is of several.
    tenant = models.CharField(max_length=128, blank=True)
    amount = models.BigIntegerField(default=0)
    # The highest share of the limit that was reported, in percent.
    reported = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["budget", "subject", "window"], name="budget_counter_once"
            )
        ]
        indexes = [models.Index(fields=["window"], name="budget_counter_age")]

    def __str__(self) -> str:
        return f"{self.budget} {self.subject}"
